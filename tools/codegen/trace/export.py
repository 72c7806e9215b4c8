"""One torch.export of one module, as plain records.

The training form of the export is used: operators are whole (softmax, layer_norm, linear), and in-place operators are
turned into their pure twins here, where that is safe.
"""

from __future__ import annotations

import contextlib
import operator
import re
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tools.codegen.ir.constant_tensors import MOST_NUMBERS, constant_target
from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import DType, Node, Raw, Ref, TensorMeta
from tools.codegen.ir.loop import Loop
from tools.codegen.trace.part_writes import VIEW_LIKE, PartWrites, node_name
from tools.codegen.trace.python_code import without_python_code
from tools.codegen.trace.stack_traces import without_stack_traces
from tools.codegen.trace.written_out import WHOLE, WrittenOut
from tools.records import Problem, ProblemForm

if TYPE_CHECKING:
    from torch import fx, nn
    from torch.export import ExportedProgram

    from tools.codegen.trace.dispatch.body import Recognised
    from tools.codegen.trace.dispatch.program import Dispatches

DROPPED = {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size"}
"""Operators without a result that only check what tracing already knows."""


@dataclass(frozen=True)
class ExportedGraph:
    """One trace."""

    arguments: tuple[str, ...]
    parameters: dict[str, str]
    inputs: dict[str, TensorMeta]
    nodes: tuple[Node, ...]
    outputs: Any
    effects: frozenset[str]
    buffers: frozenset[str]
    blocked: tuple[str, ...]
    """Why nothing of it can be generated."""
    replayable: bool = True
    """Whether every call launches the same on the same memory."""

    @property
    def signature(self) -> tuple[Any, ...]:
        """What must agree between the traces of one problem: operators, their wiring, ranks and dtypes."""
        return (tuple(map(_signature, self.nodes)), self.outputs, tuple(self.inputs))


def export_module(module: nn.Module, arguments: tuple[Any, ...], problem: Problem, written_out: WrittenOut = WHOLE) -> ExportedGraph:
    """Export `module` called with `arguments` and read the graph, some operators as what they are made of."""
    import torch

    from tools.codegen.trace.dispatch.program import Dispatches, dispatches_of
    from tools.codegen.trace.dispatch.row_subsets import exported

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with without_stack_traces(), without_python_code():
                program = exported(partial(torch.export.export, module, arguments, strict=False))
        except Exception as error:
            # addresses of objects would make the same reason another one at each size
            first_line = re.sub(r" at 0x[0-9a-f]+", "", next(iter(str(error).splitlines()), ""))[:160]
            reason = f"torch.export cannot trace the reference ({type(error).__name__}: {first_line})"
            return ExportedGraph((), {}, {}, (), (), frozenset(), frozenset(), (reason,), replayable=False)
    dispatches = dispatches_of(program)
    if dispatches.blocked:
        with warnings.catch_warnings(), contextlib.suppress(Exception), without_stack_traces(), without_python_code():
            # what picks rows may be exported as it is, and be left to PyTorch
            warnings.simplefilter("ignore")
            plain = torch.export.export(module, arguments, strict=False)
            return _Reader(plain, problem, module, written_out, Dispatches()).read()
        return ExportedGraph((), {}, {}, (), (), frozenset(), frozenset(), dispatches.blocked, replayable=False)
    return _Reader(program, problem, module, written_out, dispatches).read()


class _Reader:
    """Reads one exported program."""

    def __init__(
        self, program: ExportedProgram, problem: Problem, module: nn.Module, written_out: WrittenOut, dispatches: Dispatches
    ) -> None:
        self.program = program
        self.dispatches = dispatches
        self.written_out = written_out
        self.module = module
        self.problem = problem
        self.blocked: list[str] = []
        self.replayable = True
        self.pending: Node | None = None
        """The view through which the operator being read writes a part of a tensor."""
        self.refs: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        """Of operators with several results that are read as what they are made of, by name."""
        self.inputs: dict[str, TensorMeta] = {}
        self.nodes: list[Node] = []
        self.parameters: dict[str, str] = {}
        self.effects: set[str] = set()
        self.buffers: set[str] = set()
        self.overwritten: dict[str, str] = {}
        self.bases: dict[str, str] = {}
        self.writes = PartWrites(self.nodes, self.inputs, self.bases)

    def read(self) -> ExportedGraph:
        """Walk the graph once."""
        arguments = tuple(spec.name for spec in self.problem.abi.arguments)
        self._read_inputs(arguments)
        outputs: Any = ()
        dispatches = self.dispatches
        for node in self.program.graph.nodes:
            if node in dispatches.results:
                self._read_dispatch(node, dispatches.results[node])
            elif node.op == "call_function" and node not in dispatches.left_out:
                self._read_call(node)
            elif node.op == "output":
                outputs = self._read_output(node)
        return ExportedGraph(
            arguments,
            self.parameters,
            self.inputs,
            tuple(self.nodes),
            outputs,
            frozenset(self.effects),
            frozenset(self.buffers),
            tuple(self.blocked),
            self.replayable,
        )

    def _read_inputs(self, arguments: tuple[str, ...]) -> None:
        from torch.export.graph_signature import InputKind

        places = {node.name: node for node in self.program.graph.nodes if node.op == "placeholder"}
        taken = set(arguments)
        user = iter(arguments)
        for spec in self.program.graph_signature.input_specs:
            place = places[spec.arg.name]
            if spec.kind is InputKind.USER_INPUT:
                name = next(user)
                if _is_tensor(place.meta.get("val")):
                    self._bind(place, name)
            elif spec.kind is InputKind.PARAMETER or self._is_attribute(str(spec.target)):
                name = _parameter_name(str(spec.target), taken)
                taken.add(name)
                self.parameters[name] = str(spec.target)
                self._bind(place, name)
                if spec.kind is not InputKind.PARAMETER:
                    self.buffers.add(name)
            elif (contents := self._contents(str(spec.target))) is not None:
                self._constant(place, contents)
            else:
                self.blocked.append(f"the reference makes a constant tensor of more than {MOST_NUMBERS} elements inside forward")
                self._bind(place, place.name)

    def _contents(self, target: str) -> Any:
        """Read the numbers of a small constant tensor, e.g. `torch.tensor([0.5, 0.25])` inside forward; none of any other."""
        import torch
        from torch._subclasses.fake_tensor import FakeTensor

        value = self.program.constants.get(target)
        value = value.constant if isinstance(value, FakeTensor) else value
        if not isinstance(value, torch.Tensor) or value.numel() > MOST_NUMBERS or value.is_complex():
            return None
        with torch._C._DisableTorchDispatch():  # type: ignore[attr-defined,unused-ignore]
            return value.tolist()

    def _constant(self, place: fx.Node, contents: Any) -> None:
        meta = _meta(place.meta["val"])
        keywords = {"dtype": DType(meta.dtype), "device": Raw("device")}
        self.nodes.append(Node(place.name, constant_target(meta), (contents,), keywords, (meta,)))
        self.refs[place.name] = Ref(place.name)
        self.bases[place.name] = place.name
        # copying numbers to the device cannot be captured
        self.replayable &= not meta.shape

    def _is_attribute(self, path: str) -> bool:
        """Whether the emitted module will have this tensor too: in the state dict, or made by the copied constructor."""
        if self.problem.form is not ProblemForm.KERNELBENCH:
            return path in {spec.name for spec in self.problem.abi.parameters}
        owner: Any = self.module
        for part in path.split("."):
            owner = getattr(owner, part, None)
        return _is_tensor(owner)

    def _bind(self, place: fx.Node, name: str) -> None:
        self.refs[place.name] = Ref(name)
        self.bases[name] = name
        self.inputs[name] = _meta(place.meta["val"])

    def _read_call(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self._read_getitem(node)
            return
        target = str(node.target)
        op = target.split(".")[1] if target.startswith("aten.") else target
        if op in DROPPED:
            return
        if not target.startswith("aten."):
            self.blocked.append(f"{target} is not an ATen operator")
            return
        self._check_overwritten(node)
        pieces = self.written_out.pieces(node)
        if pieces is not None:
            self._read_pieces(node, pieces)
            return
        args, kwargs = self._tree(node.args), {key: self._tree(value) for key, value in node.kwargs.items()}
        target = re.sub(r"^aten\.__i?(and|or|xor)__", r"aten.bitwise_\1", target)
        op = target.split(".")[1]
        name = node_name(node.name, {*self.inputs, *(each.name for each in self.nodes)})
        if op.endswith("_") and not op.endswith("__"):
            target = self._purify(node, target, args, name)
        val = node.meta.get("val")
        outputs = tuple(_meta(v) for v in (val if isinstance(val, tuple | list) else (val,)) if _is_tensor(v))
        view, self.pending = self.pending, None
        if view is not None and op == "copy_" and _meta(node.args[1].meta["val"]).alike(outputs[0]):  # type: ignore[union-attr]
            self.refs[node.name] = args[1]
            self.writes.write(view, args[1])
            return
        self.nodes.append(Node(name, target, tuple(args), kwargs, outputs))
        self.refs[node.name] = Ref(name)
        if view is not None:
            self.writes.write(view, Ref(name))
        shares = op in VIEW_LIKE or name in self.effects
        source = args[0].name if args and isinstance(args[0], Ref) and shares else name
        self.bases[name] = self.bases.get(source, source)

    def _read_dispatch(self, node: fx.Node, found: Recognised) -> None:
        """Read a loop over experts as the one operator that it is."""
        self._check_overwritten(node)
        name = node_name(node.name, {*self.inputs, *(each.name for each in self.nodes)})
        self.nodes.append(replace(found.node, name=name, args=tuple(self._tree(arg) for arg in found.args)))
        self.refs[node.name] = Ref(name)
        self.bases[name] = name

    def _read_getitem(self, node: fx.Node) -> None:
        index = node.args[1]
        assert isinstance(index, int)
        source = node.all_input_nodes[0].name
        if source in self.results:
            self.refs[node.name] = self.results[source][index]
            return
        self.refs[node.name] = Ref(self.refs[node.all_input_nodes[0].name].name, index)

    def _read_pieces(self, node: fx.Node, pieces: fx.Graph) -> None:
        """Read what an operator is made of in its place."""
        from torch import fx
        from torch.utils import _pytree as pytree

        given = iter(value for value in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(value, fx.Node))
        for piece in list(pieces.nodes):
            # the same names may stand outside: all are under that of the whole
            piece._rename(f"{node.name}_{piece.name}")
            if piece.op == "placeholder":
                self.refs[piece.name] = self._tree(next(given))
            elif piece.op == "call_function":
                self._read_call(piece)
            else:
                found = self._tree(piece.args[0])
                self.results[node.name] = found
                self.refs[node.name] = found if isinstance(found, Ref) else None

    def _purify(self, node: fx.Node, target: str, args: Any, name: str) -> str:
        """Turn an in-place operator into its pure twin, or keep it where it writes to a buffer."""
        written = args[0].name
        base = self.bases.get(written, written)
        if base in self.parameters:
            self.effects.add(name)
            return target
        if base in self.inputs:
            self.blocked.append(f"{target} writes to an argument")
            self.replayable = False
        shared = [other for other, origin in self.bases.items() if origin == base and other != written]
        if self.writes.is_part(written, base):
            self.pending = self.writes.node(written)
            self.overwritten |= dict.fromkeys((other for other in shared if other != base and self.writes.node(other)), node.name)
        elif shared:
            self.blocked.append(f"{target} writes to memory that other values share")
            self.replayable = False
        self.overwritten[written] = node.name
        return re.sub(r"^(aten\.\w+?)_\.", r"\1.", target)

    def _check_overwritten(self, node: fx.Node) -> None:
        for source in node.all_input_nodes:
            ref = self.refs.get(source.name)
            if ref is not None and ref.name in self.overwritten:
                self.blocked.append(f"{node.target} reads a value that was overwritten in place")

    def _read_output(self, node: fx.Node) -> Any:
        from torch.utils import _pytree as pytree

        self._check_overwritten(node)
        flat = [self._tree(value) for value in node.args[0]]  # type: ignore[union-attr]
        mutated = len(flat) - len(self.program.graph_signature.user_outputs)
        spec = self.program.call_spec.out_spec
        assert spec is not None
        return _plain(pytree.tree_unflatten(flat[mutated:], spec))

    def _tree(self, value: Any) -> Any:
        import torch
        from torch import fx

        if isinstance(value, fx.Node):
            found = self.refs[value.name]
            return self.writes.current.get(found, found)
        if isinstance(value, tuple | list):
            return type(value)(self._tree(item) for item in value) if type(value) in (tuple, list) else [self._tree(i) for i in value]
        if isinstance(value, torch.dtype):
            return DType(str(value).removeprefix("torch."))
        if isinstance(value, torch.memory_format | torch.layout):
            return Raw(str(value))
        if isinstance(value, torch.device):
            return Raw("device")
        return value


def _plain(tree: Any) -> Any:
    """Make tuples of tuples with names, as `torch.sort` and its like return them."""
    if isinstance(tree, tuple):
        return tuple(map(_plain, tree))
    if isinstance(tree, list):
        return [_plain(item) for item in tree]
    return {key: _plain(item) for key, item in tree.items()} if type(tree) is dict else tree


def _signature(node: Node) -> tuple[Any, ...]:
    own = (node.name, node.target, tuple(node.kwargs), skeleton(node.args), tuple((len(m.shape), m.dtype) for m in node.outputs))
    if isinstance(node, Dispatch):
        return (*own, node.experts, node.first, node.value, node.adds, tuple(map(_signature, node.body.nodes)))
    if not isinstance(node, Loop):
        return own
    inside = (node.backwards, node.whole, node.sliced, node.carried, node.left, tuple(node.body.inputs))
    return (*own, *inside, tuple(map(_signature, node.body.nodes)))


def skeleton(tree: Any) -> Any:
    """Args without their numbers."""
    if isinstance(tree, tuple | list):
        return tuple(skeleton(item) for item in tree)
    if isinstance(tree, int | float) and not isinstance(tree, bool):
        return "number"
    return tree


def _meta(val: Any) -> TensorMeta:
    shape = tuple((int(size),) for size in val.shape)
    unit_last = not shape or val.stride(-1) == 1
    return TensorMeta(shape, str(val.dtype).removeprefix("torch."), bool(val.is_contiguous()), bool(unit_last))


def _is_tensor(val: Any) -> bool:
    import torch

    return isinstance(val, torch.Tensor)


def _parameter_name(key: str, taken: set[str]) -> str:
    """Name a parameter by the end of its key: `ln.weight` becomes `ln_weight`."""
    name = re.sub(r"\W", "_", key)
    name = f"p_{name}" if name[:1].isdigit() else name
    return f"{name}_parameter" if name in taken else name
