"""Read an exported program into the records of a graph: in-place operators as their pure twins, some operators as what they are made of."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tools.autocast import REGION
from tools.codegen.ir.graph import DType, Node, Raw, Ref, TensorMeta, find_refs
from tools.codegen.trace.data_sized import Part, PartError, in_order, is_free
from tools.codegen.trace.exported_graph import ExportedGraph
from tools.codegen.trace.memories import Memories
from tools.codegen.trace.part_writes import TURNED_IN_PLACE, PartWrites, View, piece_of, writes
from tools.codegen.trace.program_inputs import ProgramInputs, is_tensor, meta_of
from tools.codegen.trace.put_back import filled_diagonal
from tools.codegen.trace.written_inputs import written_whole
from tools.codegen.trace.written_out import WrittenOut
from tools.records import Problem

if TYPE_CHECKING:
    from torch import fx, nn
    from torch.export import ExportedProgram

    from tools.codegen.trace.dispatch.body import Recognised
    from tools.codegen.trace.dispatch.program import Dispatches

ROUNDED = "the reference rounds within `with torch.autocast(…)`: write the casts themselves, as in `x.to(torch.bfloat16)`"
MENDED = "write to a `.clone()` of it and return that, or have it as a buffer of the module, by `register_buffer`"
CALLED = "kernelwright.called.default"
"""The operator of `called_whole`."""
RUNNING = frozenset({"batch_norm", "instance_norm", "_native_batch_norm_legit_functional"})
"""Norms whose fourth argument is a running mean, which they write where their sixth says that they take a batch's own statistics."""


class ProgramReader:
    """Reads one exported program."""

    def __init__(
        self, program: ExportedProgram, problem: Problem, module: nn.Module, written_out: WrittenOut, dispatches: Dispatches
    ) -> None:
        """Take the program, which operators are read as what they are made of, and which of its nodes are loops over experts."""
        inputs = ProgramInputs(program, problem, module)
        self.program, self.problem, self.written_out, self.dispatches = program, problem, written_out, dispatches
        self.arguments, self.parameters, self.buffers = inputs.arguments, inputs.parameters, inputs.buffers
        self.inputs = inputs.tensors
        self.nodes = inputs.constants
        self.refs: dict[str, Any] = {**inputs.refs}
        places = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        self.memories = Memories({places[name]: ref.name for name, ref in inputs.refs.items()})
        self.blocked, self.replayable = inputs.blocked, inputs.replayable
        self.results: dict[str, Any] = {}
        """Of operators with several results that are read as what they are made of, by name."""
        self.effects: set[str] = set()
        self.kept = {*inputs.parameters, *problem.abi.written}
        """Inputs whose memory outlives the call: what is written there is left behind."""
        updated = {name for name, key in inputs.parameters.items() if key in problem.abi.updated}
        left_behind = {places[name]: ref.name for name, ref in inputs.refs.items() if ref.name in updated.union(problem.abi.written)}
        self.whole = written_whole(program.graph.nodes, left_behind)
        self.writes = PartWrites(self.nodes, self.inputs, self.memories.bases)

    def read(self) -> ExportedGraph:
        """Walk the graph once; raises PartError where data size what cannot be one operator."""
        outputs: Any = ()
        dispatches = self.dispatches
        for node in in_order(self.program.graph, dispatches.left_out, frozenset(dispatches.results)):
            if isinstance(node, Part):
                self._read_part(node)
            elif node in dispatches.results:
                self._read_dispatch(node, dispatches.results[node])
            elif node.op == "call_function":
                self._read_call(node)
            elif node.op == "output":
                outputs = self._read_output(node)
        self._store()
        self.writes.unread(tuple(find_refs(outputs)))
        return ExportedGraph(
            self.arguments,
            self.parameters,
            self.inputs,
            tuple(self.nodes),
            outputs,
            frozenset(self.effects),
            frozenset(self.buffers),
            tuple(self.blocked),
            self.replayable,
        )

    def _read_call(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self._read_getitem(node)
            return
        target = str(node.target)
        if target == CALLED:
            self._read_called(node)
            return
        if not target.startswith("aten."):
            self.blocked.append(ROUNDED if target == REGION else f"{target} is not an ATen operator")
            self.refs[node.name] = Ref(node.name)
            return
        self._check_overwritten(node)
        if target.split(".")[1] in RUNNING:
            *_, mean, _, training = node.args[:6]
            if training and mean is not None:
                name = self.refs[mean.name].name  # type: ignore[union-attr,index]
                self._refuse_argument(target, self.memories.bases.get(name, name), self.parameters)
        pieces = self.written_out.pieces(node)
        if pieces is not None:
            self._read_pieces(node, pieces)
            return
        args, kwargs = self._tree(node.args), {key: self._tree(value) for key, value in node.kwargs.items()}
        target = re.sub(r"^aten\.__(i?)(and|or|xor)__", lambda found: f"aten.bitwise_{found[2]}{'_' if found[1] else ''}", target)
        name = self.writes.names.free(node.name)
        val = node.meta.get("val")
        outputs = tuple(meta_of(v) for v in (val if isinstance(val, tuple | list) else (val,)) if is_tensor(v))
        call = Node(name, target, tuple(args), kwargs, outputs)
        if writes(str(node.target)) and not self._is_turned(node):
            self._read_write(node, call)
            return
        call = replace(call, target=_pure(target))
        self.nodes.append(call)
        self.refs[node.name] = Ref(name)
        source = self._looked_at(node)
        self.memories.add(node, name, source)
        if is_tensor(val) and source is not None and self.memories.is_shared(name, source.name):
            self.writes.look(Ref(name), View(source, call))

    def _looked_at(self, node: fx.Node) -> Ref | None:
        """Name the tensor that is an operator's first argument."""
        from torch import fx

        return self.refs[node.args[0].name] if node.args and isinstance(node.args[0], fx.Node) else None

    def _is_turned(self, node: fx.Node) -> bool:
        """Whether an operator only has a tensor that was made here looked at in another way."""
        tensor = self._looked_at(node)
        own = tensor is not None and self.memories.bases.get(tensor.name, tensor.name) not in self.inputs
        return own and str(node.target).split(".")[1] in TURNED_IN_PLACE

    def _read_write(self, node: fx.Node, call: Node) -> None:
        """Read an operator that writes in place as its pure twin, or keep it where it writes to a part of what is left behind."""
        tensor = self._looked_at(node)
        assert tensor is not None
        base = self.memories.bases.get(tensor.name, tensor.name)
        if base in self.kept and base not in self.whole:
            self.effects.add(call.name)
            self.nodes.append(call)
            self.refs[node.name] = Ref(call.name)
            self.memories.add(node, call.name, tensor)
            return
        self._refuse_argument(call.target, base, self.kept)
        self.refs[node.name] = tensor
        value = Ref(call.name)
        if call.op == "copy_" and self._is_given(node, call):
            value = call.args[1]
        else:
            self.nodes += filled_diagonal(call) or [replace(call, target=self._twin(call.target))]
        if base not in self.inputs or base in self.whole:
            self.writes.write(tensor, value)

    def _store(self) -> None:
        """Write to each input that was only written as a whole what it holds in the end."""
        for name in sorted(self.whole):
            value = self.writes.read(Ref(name))
            origin = self.memories.bases.get(value.name, value.name)
            if self.writes.is_lost(Ref(name)) or (origin in self.kept and origin != value.name) or value.name in self.kept:
                self.blocked.append(f"{name} is left with what another input held")
            store = self.writes.names.free(f"{name}_stored")
            self.nodes.append(Node(store, "aten.copy_.default", (Ref(name), value), {}, (self.inputs[name],)))
            self.effects.add(store)

    def _is_given(self, node: fx.Node, copy: Node) -> bool:
        """Whether what is copied can be read in the place of the copy: it is alike, and nothing that may be written later."""
        source, value = node.args[1], copy.args[1]
        alike = isinstance(value, Ref) and meta_of(source.meta["val"]).alike(copy.outputs[0])  # type: ignore[union-attr]
        return alike and self.memories.bases.get(value.name, value.name) not in self.kept

    def _read_called(self, node: fx.Node) -> None:
        """Read a call of a function that cannot be traced."""
        from tools.codegen.trace.called_whole import CALLS

        self._check_overwritten(node)
        tensors, number = node.args
        name = self.writes.names.free(node.name)
        outputs = tuple(map(meta_of, node.meta["val"]))
        self.nodes.append(CALLS[number].node(name, self._tree(tensors), self._tree, outputs))  # type: ignore[index]
        self.refs[node.name] = Ref(name)
        self.memories.add(node, name, None)

    def _read_part(self, part: Part) -> None:
        """Read operators among which data decide sizes as the one operator that they become."""
        for node in part.members:
            self._check_overwritten(node)
        name = self.writes.names.free(part.members[0].name)
        self.nodes.append(part.node(name, [self._tree(node) for node in part.given], self._tree, [self._meta(node) for node in part.left]))
        for place, node in enumerate(part.left):
            self.refs[node.name] = Ref(name, place)
            self.memories.add(node, name, None)

    def _meta(self, node: fx.Node) -> TensorMeta:
        """Describe a result of such operators; one that is returned has the size that it has at the problem's own call."""
        import torch
        from torch.utils import _pytree as pytree

        val = node.meta["val"]
        if not isinstance(val, torch.Tensor):
            raise PartError("a number of its data is used elsewhere")
        returned = [value for value in pytree.tree_leaves(self.program.graph.output_node().args) if value is not None]
        specs = self.problem.abi.outputs
        if is_free(val) and node in returned and len(returned) == len(specs):
            spec = specs[returned.index(node)]
            return TensorMeta(tuple((size,) for size in spec.shape), str(val.dtype).removeprefix("torch."))
        return meta_of(val)

    def _read_dispatch(self, node: fx.Node, found: Recognised) -> None:
        """Read a loop over experts as the one operator that it is."""
        self._check_overwritten(node)
        name = self.writes.names.free(node.name)
        self.nodes.append(replace(found.node, name=name, args=tuple(self._tree(arg) for arg in found.args)))
        self.refs[node.name] = Ref(name)
        self.memories.add(node, name, None)
        base = self.memories.bases[name]
        if base != name:
            # others have the tensor that the loop writes to
            self.refs[node.name] = Ref(base)
            self.writes.write(Ref(base), Ref(name))

    def _read_getitem(self, node: fx.Node) -> None:
        index = node.args[1]
        assert isinstance(index, int)
        source = node.all_input_nodes[0].name
        if source in self.results:
            self.refs[node.name] = self.results[source][index]
            return
        cut = self.refs[source]
        self.refs[node.name] = Ref(cut.name, index)
        whole = self._looked_at(node.all_input_nodes[0])
        piece = piece_of(node, index, whole, cut.name) if whole is not None else None
        if piece is not None and self.memories.is_shared(cut.name, piece.source.name):
            self.writes.look(Ref(cut.name, index), piece)

    def _read_pieces(self, node: fx.Node, pieces: fx.Graph) -> None:
        """Read what an operator is made of in its place."""
        from torch import fx
        from torch.utils import _pytree as pytree

        given = iter(value for value in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(value, fx.Node))
        for piece in list(pieces.nodes):
            # the same names may stand outside: all are under that of the whole
            piece._rename(f"{node.name}_{piece.name}")
            if piece.op == "placeholder":
                self.refs[piece.name] = self.refs[next(given).name]
            elif piece.op == "call_function":
                self._read_call(piece)
            else:
                found = pytree.tree_map(lambda each: self.refs[each.name] if isinstance(each, fx.Node) else each, piece.args[0])
                self.results[node.name] = found
                self.refs[node.name] = found if isinstance(found, Ref) else None

    def _twin(self, target: str) -> str:
        """Name the operator that gives what one that writes in place writes."""
        import torch

        pure = _pure(target)
        op, overload = pure.split(".")[1:]
        if overload not in getattr(getattr(torch.ops.aten, op, None), "overloads", list)():
            self.blocked.append(f"{target} is only known to write in place")
        return pure

    def _refuse_argument(self, target: str, base: str, writable: Collection[str]) -> None:
        """Say that an operator writes to what comes from outside, where that is none of what is `writable`."""
        if base in self.inputs and base not in writable:
            self.blocked.append(f"{target} writes to an argument: {MENDED}")
            self.replayable = False

    def _check_overwritten(self, node: fx.Node) -> None:
        for source in node.all_input_nodes:
            ref = self.refs.get(source.name)
            if ref is not None and self.writes.is_lost(ref):
                self.blocked.append(f"{node.target} reads a value that was overwritten in place")

    def _read_output(self, node: fx.Node) -> Any:
        from torch.utils import _pytree as pytree

        self._check_overwritten(node)
        flat = [self._returned(value) for value in node.args[0]]  # type: ignore[union-attr]
        mutated = len(flat) - len(self.program.graph_signature.user_outputs)
        spec = self.program.call_spec.out_spec
        assert spec is not None
        return _plain(pytree.tree_unflatten(flat[mutated:], spec))

    def _returned(self, value: Any) -> Any:
        """Read what is returned: an argument that is written to as itself; a tensor that an argument was copied to is another one."""
        own = self.refs[value.name] if hasattr(value, "op") else None
        if isinstance(own, Ref) and own.name in self.whole:
            return own
        found = self._tree(value)
        if not isinstance(found, Ref) or found.name not in self.inputs or self.refs[value.name] == found:
            return found
        name = self.writes.names.free(f"{found.name}_copied")
        self.nodes.append(Node(name, "aten.clone.default", (found,), {}, (meta_of(value.meta["val"]),)))
        return Ref(name)

    def _tree(self, value: Any) -> Any:
        import torch
        from torch import fx

        if isinstance(value, fx.Node):
            found = self.refs[value.name]
            return self.writes.read(found) if isinstance(found, Ref) else found
        if isinstance(value, tuple | list):
            return type(value)(self._tree(item) for item in value) if type(value) in (tuple, list) else [self._tree(i) for i in value]
        if isinstance(value, torch.dtype):
            return DType(str(value).removeprefix("torch."))
        if isinstance(value, torch.memory_format | torch.layout):
            return Raw(str(value))
        if isinstance(value, torch.device):
            return Raw("device")
        return value


def _pure(target: str) -> str:
    return re.sub(r"^(aten\.\w*[^\W_])_\.", r"\1.", target)


def _plain(tree: Any) -> Any:
    """Make tuples of tuples with names, as `torch.sort` and its like return them, and plain dictionaries: the ABI has what they were."""
    if isinstance(tree, tuple):
        return tuple(map(_plain, tree))
    if isinstance(tree, list):
        return [_plain(item) for item in tree]
    return {key: _plain(item) for key, item in tree.items()} if isinstance(tree, dict) else tree
