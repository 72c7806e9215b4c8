"""Channels-last: which values of a graph lie with their channels last in memory, and the graph as kernels then see it.

A convolution whose region says `memory_format=channels_last` (the library's, or a dense one of ours) gives its result as rows of
channels. Here its node takes that shape, and a permutation after it has the shape the reference knows; since kernels see through
permutations, those that follow read rows of channels as they lie, and pointwise ones write their results the same way, as do norms,
poolings and concatenations of ours. No pass over memory turns anything but the convolution's input, where that does not lie so already;
weights that stay are turned once for all calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.graph import LaidOut, Node, Normalised, OperatorGraph, Ref, TensorMeta, map_refs
from tools.codegen.ir.operators.families import CONVOLUTIONS, EITHER_LAYOUT, MOVING, POOLINGS, PRODUCTS
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.ir.schedule import AS_IS, CHANNELS_LAST, FORMAT, RESULT_TOO, Schedule
from tools.codegen.ir.sizes import is_one
from tools.codegen.ir.views import is_view

KEEPING = frozenset(
    {"batch_norm", "_native_batch_norm_legit_functional", "group_norm", "instance_norm", *(name for name in POOLINGS if "1d" not in name)}
)
"""Norms and poolings that can write their result as their input lies."""
REGROUPING = frozenset({"view", "reshape", "_unsafe_view"})
"""Views that say the sizes of what they give."""


def lay_out(graph: OperatorGraph, schedule: Schedule) -> OperatorGraph:
    """Lay the regions of a schedule out, whose nodes are the graph's; the same graph where it says nothing. It is kept with the graph."""
    chosen: dict[str, str] = {}
    for region in schedule.regions:
        wanted = str(region.parameters.get(FORMAT, AS_IS))
        if wanted != AS_IS:
            chosen |= {name: wanted for name in region.nodes if graph.by_name[name].op in EITHER_LAYOUT}
    if not chosen:
        return graph
    ours = frozenset(name for region in schedule.regions if region.is_generated for name in region.nodes)
    known: dict[tuple[frozenset[tuple[str, str]], frozenset[str]], OperatorGraph] = graph.__dict__.setdefault("_laid_out", {})
    asked = frozenset(chosen.items()), ours
    if asked not in known:
        known[asked] = _ChannelsLast(graph, chosen, ours).run()
    return known[asked]


def with_channels_last(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Lay the library's convolutions of these names out, in a forward whose other operators are generated."""
    chosen = dict.fromkeys(names, CHANNELS_LAST)
    return _ChannelsLast(graph, chosen, frozenset(graph.by_name) - set(chosen)).run()


def turnable(graph: OperatorGraph) -> tuple[str, ...]:
    """Name the convolutions that the library runs on either layout, but for those of single channels, which ours run faster as they are.

    Nor is anything turned at a single position, where both layouts are the same.
    """
    able = (node for node in graph.nodes if node.op in EITHER_LAYOUT and len(node.outputs[0].shape) == CONVOLUTIONS[node.op][0] + 2)
    return tuple(node.name for node in able if not is_depthwise(graph, node) and not all(map(is_one, node.outputs[0].shape[2:])))


def is_depthwise(graph: OperatorGraph, node: Node) -> bool:
    """Whether a convolution makes each channel of its result of one channel of its input."""
    transposed = CONVOLUTIONS[node.op][1]
    groups = node.argument(6, "groups", 1)
    return groups != 1 and (groups == graph.meta(node.args[1]).shape[0][0] if transposed else is_one(graph.meta(node.args[1]).shape[1]))


def frees_results(graph: OperatorGraph, names: frozenset[str]) -> bool:
    """Whether convolutions with their channels last can hand that layout on to more of what forward returns than they do anyway."""
    made = [graph.by_name[ref.name].op for ref in graph.returned if ref.name in graph.by_name]
    if not any(op in ARITHMETIC or op in LOGIC for op in made):
        return False
    inside, too = (_ChannelsLast(graph, dict.fromkeys(names, word), frozenset()).run().returned for word in (CHANNELS_LAST, RESULT_TOO))
    return inside != too


class _ChannelsLast:
    """Collects the rewritten nodes, and which values lie with their channels last."""

    def __init__(self, graph: OperatorGraph, chosen: dict[str, str], ours: frozenset[str]) -> None:
        self.graph, self.chosen, self.ours = graph, chosen, ours
        self.packed: list[Node] = []
        self.nodes: list[Node] = []
        self.nodes_by_name: dict[str, Node] = {}
        self.seen: dict[Ref, Ref] = {}
        """Values that lie so: their name in the reference's shape."""
        self.metas: dict[str, TensorMeta] = dict(graph.inputs)
        self.strided: set[str] = set()
        """Parts of such values, and what the library makes of them in their order: its last dimension is not the one that lies close."""
        self.result_too = RESULT_TOO in chosen.values()

    def run(self) -> OperatorGraph:
        """Rewrite every node in order."""
        for node in self.graph.nodes:
            if node.name in self.chosen:
                self._convolution(node)
            elif self._follows(node) or self._feeds(node):
                self._pointwise(node)
            elif self._keeps(node):
                self._on_channels(node)
            elif node.name in self.ours and node.op in MOVING and self._is_image(node):
                self._moved(node, 1)
            elif node.name in self.ours and node.op in MOVING and self._becomes_image(node):
                self._moved(node, len(node.outputs[0].shape) - 3)
            elif self._is_moved(node):
                self._regrouped(node)
            else:
                self._as_before(node)
        laid_out = replace(self.graph, nodes=tuple(self.nodes), outputs=self._substitute(self.graph.outputs))
        made = {node.name: node.outputs[0] for node in self.packed}
        return replace(
            laid_out,
            inputs={**laid_out.inputs, **made},
            fixed=laid_out.fixed | set(made),
            prepacked=(*laid_out.prepacked, *self.packed),
        )

    def _add(self, node: Node) -> None:
        self.nodes.append(node)
        self.nodes_by_name[node.name] = node
        if len(node.outputs) == 1:
            self.metas[node.name] = node.outputs[0]

    def _as_before(self, node: Node) -> None:
        """Have a node read values in the reference's shape; what it gives without gaps in the trace may have other strides here."""
        made = replace(node, args=self._substitute(node.args), kwargs=self._substitute(node.kwargs))
        looks = is_view(node) or node.name not in self.ours
        if looks and any(ref in self.seen or ref.name in self.strided for ref in node.refs):
            made = replace(made, outputs=tuple(meta if meta.contiguous else replace(meta, unit_last=False) for meta in node.outputs))
            self.strided.add(node.name)
        self._add(made)

    def _convolution(self, node: Node) -> None:
        source = node.args[0]
        weight = self._weight(node) if node.name not in self.ours else node.args[1]
        args = (self.seen.get(source, source), weight, *self._substitute(node.args[2:]))
        transposed = LaidOut(node.name, node.target, args, node.kwargs, (_rows(node.outputs[0]),), copied=source not in self.seen)
        self._add_transposed(transposed, node.outputs[0])

    def _weight(self, node: Node) -> Any:
        """Have the weight of a library's convolution brought to that layout once for all calls, where it is a fixed parameter."""
        weight = node.args[1]
        if weight.name not in self.graph.fixed:
            return self._substitute(weight)
        name = f"{node.name}_weight_last"
        while name in self.graph.inputs or name in self.graph.by_name:
            name += "_"
        meta = replace(self.graph.meta(weight), contiguous=False, unit_last=False)
        self.packed.append(Node(name, "helper.channels_last_weight.default", (weight,), {}, (meta,)))
        return Ref(name)

    def _keeps(self, node: Node) -> bool:
        """Whether a kernel of ours looks at channels of an input that lies so, and others than views read what it makes."""
        if node.name not in self.ours or not self._looks_at_channels(node):
            return False
        users = self.graph.users.get(node.name, ())
        return Ref(node.name) not in self.graph.returned and not any(is_view(user) or user.op in PRODUCTS for user in users)

    def _looks_at_channels(self, node: Node) -> bool:
        """Whether a norm, a pooling or a concatenation of channels reads what lies with its channels last."""
        if node.op == "cat":
            refs, rank = node.args[0], len(node.outputs[0].shape)
            return rank > 3 and node.argument(1, "dim", 0) in (1, 1 - rank) and any(ref in self.seen for ref in refs)
        return node.op in KEEPING and node.args[0] in self.seen and (node.op not in POOLINGS or len(node.outputs) == 1)

    def _on_channels(self, node: Node) -> None:
        """Write such an operator so that its first result lies as its input does."""
        meta = node.outputs[0]
        laid_out = LaidOut(
            node.name, node.target, self._substitute(node.args), self._substitute(node.kwargs), (_rows(meta), *node.outputs[1:])
        )
        self._add_transposed(laid_out, meta)

    def _follows(self, node: Node) -> bool:
        """Whether a pointwise operator can walk rows of channels: one of its operands lies so, and none is aligned otherwise."""
        if (node.op not in ARITHMETIC and node.op not in LOGIC) or node.op == "prelu" or len(node.outputs) != 1:
            return False
        if Ref(node.name) in self.graph.returned and not self.result_too:
            return False
        shape = node.outputs[0].shape
        found = [ref for ref in node.refs if ref in self.seen]
        return bool(found) and any(self.graph.meta(ref).shape == shape for ref in found) and node.outputs[0].dtype in COMPUTE

    def _feeds(self, node: Node) -> bool:
        """Whether a pointwise operator of ours is read by convolutions alone that look at its result so: it need not be turned then."""
        if node.name not in self.ours or node.op not in ARITHMETIC or node.op == "prelu" or Ref(node.name) in self.graph.returned:
            return False
        users, rank = self.graph.users.get(node.name, ()), len(node.outputs[0].shape)
        alike = any(self.graph.meta(ref).shape == node.outputs[0].shape for ref in node.refs)
        images = all(user.name in self.chosen and user.args[0] == Ref(node.name) for user in users)
        return bool(users) and images and alike and rank > 3 and node.outputs[0].dtype in COMPUTE

    def _is_image(self, node: Node) -> bool:
        """Whether convolutions alone read a value, which look at it with its channels last."""
        users = self.graph.users.get(node.name, ())
        images = all(user.name in self.chosen and user.args[0] == Ref(node.name) for user in users)
        rank, out = len(node.outputs[0].shape), node.outputs[0]
        return bool(users) and images and rank > 3 and Ref(node.name) not in self.graph.returned and out.dtype in COMPUTE

    def _becomes_image(self, node: Node) -> bool:
        """Whether such a value is a view of another alone, whose first dimensions it takes as one."""
        users, shape = self.graph.users.get(node.name, ()), node.outputs[0].shape
        if len(users) != 1 or users[0].op not in REGROUPING or Ref(node.name) in self.graph.returned or len(shape) < 5:
            return False
        (view,) = users
        rest = view.outputs[0].shape
        sizes = view.args[1] if len(view.args) == 2 else None
        alike = len(rest) == 4 and rest[1:] == shape[-3:] and isinstance(sizes, list | tuple) and len(sizes) == 4
        return alike and node.outputs[0].dtype in COMPUTE and self._is_image(view)

    def _moved(self, node: Node, leading: int) -> None:
        """Have kernels write what they move in rows of channels."""
        meta = node.outputs[0]
        args, kwargs = self._substitute(node.args), self._substitute(node.kwargs)
        laid_out = LaidOut(node.name, node.target, args, kwargs, (_rows(meta, leading), *node.outputs[1:]), leading=leading)
        if leading == 1:
            self._add_transposed(laid_out, meta)
        else:
            self._add(laid_out)

    def _is_moved(self, node: Node) -> bool:
        """Whether a view regroups what lies in rows of channels already."""
        source = self.nodes_by_name.get(node.args[0].name) if node.op in REGROUPING and isinstance(node.args[0], Ref) else None
        return isinstance(source, LaidOut) and source.leading > 1

    def _regrouped(self, node: Node) -> None:
        batch, channels, *places = node.args[1]
        made = Node(node.name, node.target, (node.args[0], [batch, *places, channels]), node.kwargs, (_rows(node.outputs[0]),))
        self._add_transposed(made, node.outputs[0])

    def _pointwise(self, node: Node) -> None:
        rank = len(node.outputs[0].shape)
        args = self._substitute(node.args, rank, node.name)
        kwargs = self._substitute(node.kwargs, rank, node.name)
        made = Node(node.name, node.target, args, kwargs, (_rows(node.outputs[0]),))
        if isinstance(node, Normalised):
            made = replace(node, args=args, kwargs=kwargs, outputs=made.outputs)
        self._add_transposed(made, node.outputs[0])

    def _add_transposed(self, node: Node, meta: TensorMeta) -> None:
        """Add a node whose result lies with its channels last, and the view that has the reference's shape."""
        self._add(node)
        rank = len(meta.shape)
        view = Node(
            f"{node.name}_seen", "aten.permute.default", (Ref(node.name), [0, rank - 1, *range(1, rank - 1)]), {},
            (replace(meta, contiguous=False, unit_last=False),),
        )  # fmt: skip
        self._add(view)
        self.seen[Ref(node.name)] = Ref(view.name)

    def _substitute(self, tree: Any, rank: int = 0, reader: str = "") -> Any:
        """Name values in the reference's shape; with a rank, as rows of channels."""
        if not rank:
            return map_refs(tree, lambda ref: self.seen.get(ref, ref))
        return map_refs(tree, lambda ref: ref if ref in self.seen else self._as_rows(ref, rank, reader))

    def _as_rows(self, ref: Ref, rank: int, reader: str) -> Ref:
        """View an operand that lies as the reference has it: pad its shape to the rank, then put dimension one last."""
        meta = self.graph.meta(ref)
        if not meta.shape:
            return ref
        one = (1,) * self.graph.traces
        if len(meta.shape) < rank:
            padded = replace(meta, shape=((one,) * (rank - len(meta.shape)) + meta.shape))
            for step in range(rank - len(meta.shape)):
                shape = padded.shape[rank - len(meta.shape) - step - 1 :]
                view = Node(f"{ref.name}_for_{reader}_{step}", "aten.unsqueeze.default", (ref, 0), {}, (replace(meta, shape=shape),))
                self._add(view)
                ref = Ref(view.name)
            meta = padded
        order = [0, *range(2, rank), 1]
        name = f"{ref.name}_turned" if reader in ref.name else f"{ref.name}_for_{reader}"
        transposed = replace(_rows(meta), contiguous=False, unit_last=False)
        self._add(Node(name, "aten.permute.default", (ref, order), {}, (transposed,)))
        return Ref(name)


def _rows(meta: TensorMeta, leading: int = 1) -> TensorMeta:
    """Shape and strides of a value as rows of channels, which come after the leading dimensions."""
    shape = (*meta.shape[:leading], *meta.shape[leading + 1 :], meta.shape[leading])
    return replace(meta, shape=shape, contiguous=True, unit_last=True)
