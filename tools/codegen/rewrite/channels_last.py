"""Channels-last: which values of a graph lie with their channels last in memory, and the graph as kernels then see it.

A convolution whose region says `memory_format=channels_last` (the library's, or a dense one of ours) gives its result as rows of
channels. Here its node takes that shape, and a permutation after it has the shape the reference knows; since kernels see through
permutations, those that follow read rows of channels as they lie, and pointwise ones write their results the same way. No pass over
memory turns anything but the convolution's input, where that does not lie so already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.graph import LaidOut, Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.operators import EITHER_LAYOUT
from tools.codegen.ir.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.ir.schedule import AS_IS, CHANNELS_LAST, FORMAT, RESULT_TOO, Schedule


def lay_out(graph: OperatorGraph, schedule: Schedule) -> OperatorGraph:
    """Lay the regions of a schedule out, whose nodes are the graph's; the same graph where it says nothing."""
    chosen: dict[str, str] = {}
    for region in schedule.regions:
        wanted = str(region.parameters.get(FORMAT, AS_IS))
        if wanted != AS_IS:
            chosen |= {name: wanted for name in region.nodes if graph.by_name[name].op in EITHER_LAYOUT}
    return _ChannelsLast(graph, chosen).run() if chosen else graph


def frees_results(graph: OperatorGraph, names: frozenset[str]) -> bool:
    """Whether convolutions with their channels last can hand that layout on to more of what forward returns than they do anyway."""
    made = [graph.by_name[ref.name].op for ref in graph.returned if ref.name in graph.by_name]
    if not any(op in ARITHMETIC or op in LOGIC for op in made):
        return False
    inside, too = (_ChannelsLast(graph, dict.fromkeys(names, word)).run().returned for word in (CHANNELS_LAST, RESULT_TOO))
    return inside != too


class _ChannelsLast:
    """Collects the rewritten nodes, and which values lie with their channels last."""

    def __init__(self, graph: OperatorGraph, chosen: dict[str, str]) -> None:
        self.graph, self.chosen = graph, chosen
        self.nodes: list[Node] = []
        self.seen: dict[Ref, Ref] = {}
        """Values that lie so: their name in the reference's shape."""
        self.metas: dict[str, TensorMeta] = dict(graph.inputs)
        self.result_too = RESULT_TOO in chosen.values()

    def run(self) -> OperatorGraph:
        """Rewrite every node in order."""
        for node in self.graph.nodes:
            if node.name in self.chosen:
                self._convolution(node)
            elif self._follows(node):
                self._pointwise(node)
            else:
                self._add(replace(node, args=self._substitute(node.args), kwargs=self._substitute(node.kwargs)))
        return replace(self.graph, nodes=tuple(self.nodes), outputs=self._substitute(self.graph.outputs))

    def _add(self, node: Node) -> None:
        self.nodes.append(node)
        if len(node.outputs) == 1:
            self.metas[node.name] = node.outputs[0]

    def _convolution(self, node: Node) -> None:
        source = node.args[0]
        args = (self.seen.get(source, source), *self._substitute(node.args[1:]))
        transposed = LaidOut(node.name, node.target, args, node.kwargs, (_rows(node.outputs[0]),), copied=source not in self.seen)
        self._add_transposed(transposed, node.outputs[0])

    def _follows(self, node: Node) -> bool:
        """Whether a pointwise operator can walk rows of channels: one of its operands lies so, and none is aligned otherwise."""
        if (node.op not in ARITHMETIC and node.op not in LOGIC) or node.op == "prelu" or len(node.outputs) != 1:
            return False
        if Ref(node.name) in self.graph.returned and not self.result_too:
            return False
        shape = node.outputs[0].shape
        found = [ref for ref in node.refs if ref in self.seen]
        return bool(found) and any(self.graph.meta(ref).shape == shape for ref in found) and node.outputs[0].dtype in COMPUTE

    def _pointwise(self, node: Node) -> None:
        rank = len(node.outputs[0].shape)
        args = self._substitute(node.args, rank, node.name)
        kwargs = self._substitute(node.kwargs, rank, node.name)
        self._add_transposed(Node(node.name, node.target, args, kwargs, (_rows(node.outputs[0]),)), node.outputs[0])

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
        if isinstance(tree, Ref):
            if not rank:
                return self.seen.get(tree, tree)
            return tree if tree in self.seen else self._as_rows(tree, rank, reader)
        if isinstance(tree, tuple | list):
            return type(tree)(self._substitute(item, rank, reader) for item in tree)
        if isinstance(tree, dict):
            return {key: self._substitute(item, rank, reader) for key, item in tree.items()}
        return tree

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


def _rows(meta: TensorMeta) -> TensorMeta:
    """Shape and strides of a value as rows of channels."""
    return replace(meta, shape=(meta.shape[0], *meta.shape[2:], meta.shape[1]), contiguous=True, unit_last=True)
