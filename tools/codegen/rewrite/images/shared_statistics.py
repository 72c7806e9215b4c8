"""Statistics that several batch norms need: those of a concatenation of channels are its pieces', and each piece's are made once.

A mean over images and positions belongs to one channel. Norms of a growing concatenation, as in a DenseNet, or several of one tensor
therefore read a piece once for all, and what a norm keeps beside it is a few numbers a channel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod

from tools.codegen.ir.graph import Node, OfPieces, OperatorGraph, Ref, Statistics, TensorMeta
from tools.codegen.ir.graph_builder import GraphBuilder

CHANNELS = 1
MOST_PIECES = 64
"""Pieces of a concatenation up to which one kernel joins what is known of them."""
MOST_JOINED = 8
"""Pieces up to which a kernel reads a growing concatenation piece by piece; beyond, it is written down on the way."""


def shared_pieces(graph: OperatorGraph, norms: Iterable[Node]) -> dict[str, tuple[Ref, ...]]:
    """Name the norms of which another reads a piece as well, each with its pieces in order."""
    found = {norm.name: _pieces(graph, norm.args[0]) for norm in norms if isinstance(norm.args[6], float)}
    counted = Counter(piece for pieces in found.values() for piece in set(pieces))
    return {name: pieces for name, pieces in found.items() if len(pieces) <= MOST_PIECES and any(counted[one] > 1 for one in pieces)}


def flattened(graph: OperatorGraph, node: Node, norms: Iterable[str]) -> Node:
    """Write a growing concatenation by its pieces, where it is what one of the norms reads or holds that: nobody else needs the part."""
    read = {graph.by_name[name].args[0].name for name in norms}
    if node.op != "cat" or not read & {node.name, *(ref.name for ref in node.args[0])}:
        return node
    pieces = _pieces(graph, Ref(node.name))
    return replace(node, args=(list(pieces), CHANNELS), kwargs={}) if len(node.args[0]) < len(pieces) <= MOST_JOINED else node


def _pieces(graph: OperatorGraph, ref: Ref) -> tuple[Ref, ...]:
    node = graph.by_name.get(ref.name)
    if node is None or node.op != "cat" or node.argument(1, "dim", 0) % len(node.outputs[0].shape) != CHANNELS:
        return (ref,)
    return tuple(piece for each in node.args[0] for piece in _pieces(graph, each))


@dataclass
class PieceStatistics:
    """Writes the statistics of pieces and joins them, each piece's once."""

    graph: OperatorGraph
    made: dict[Ref, tuple[Ref, ...]] = field(default_factory=dict)
    """Of each piece: variance and mean, and where sizes vary the variance with one degree of freedom less."""

    def of(self, norm: Node, pieces: tuple[Ref, ...]) -> tuple[list[Node], dict[int, Ref]]:
        """Write what a norm's results but the first become: nodes, and the new values by the old places."""
        nodes = [node for piece in pieces if piece not in self.made for node in self._made(piece)]
        builder = GraphBuilder(self.graph, norm.name)
        for piece in pieces:
            builder.results |= dict.fromkeys(self.made[piece], self._meta(piece))
        each = zip(*(self.made[piece] for piece in pieces), strict=True)
        variance, mean, *more = (refs[0] if len(refs) == 1 else builder.call("cat.default", list(refs), 0) for refs in each)
        mean_before, variance_before, _, momentum, eps = norm.args[3:8]
        inverse = builder.call("rsqrt.default", builder.call("add.Tensor", variance, float(eps)))
        values = {1: mean, 2: inverse}
        count = self._count(pieces[0])[0]
        unbiased, scale = (more[0], 1.0) if more else (variance, count / max(1, count - 1))
        for place, before, now, factor in ((3, mean_before, mean, 1.0), (4, variance_before, unbiased, scale)):
            if before is not None and len(norm.outputs) > place:
                # it may be what another norm makes of the buffer
                builder.results[before] = norm.outputs[place]
                kept = builder.call("mul.Tensor", before, 1.0 - momentum)
                values[place] = builder.call("add.Tensor", kept, builder.call("mul.Tensor", now, momentum * factor))
        return [*nodes, *(OfPieces(node.name, node.target, node.args, node.kwargs, node.outputs) for node in builder.nodes)], values

    def _made(self, piece: Ref) -> list[Node]:
        stem = f"{piece.name}_{piece.index}" if piece.index else piece.name
        moments, spread = (_free(self.graph, f"{stem}_{word}") for word in ("moments", "spread"))
        meta = self._meta(piece)
        dims = [place for place in range(len(self.graph.meta(piece).shape)) if place != CHANNELS]
        self.made[piece] = (Ref(moments, 0), Ref(moments, 1))
        nodes: list[Node] = [Statistics(moments, "aten.var_mean.correction", (piece, dims), {"correction": 0}, (meta, meta))]
        if len(set(self._count(piece))) > 1:
            self.made[piece] = (*self.made[piece], Ref(spread))
            nodes.append(Statistics(spread, "aten.var.correction", (piece, dims), {"correction": 1}, (meta,)))
        return nodes

    def _count(self, piece: Ref) -> tuple[int, ...]:
        """Elements of a channel, in every trace."""
        sizes = [size for place, size in enumerate(self.graph.meta(piece).shape) if place != CHANNELS]
        return tuple(prod(each) for each in zip(*sizes, strict=True))

    def _meta(self, piece: Ref) -> TensorMeta:
        return TensorMeta((self.graph.meta(piece).shape[CHANNELS],), "float32")


def _free(graph: OperatorGraph, name: str) -> str:
    while name in graph.inputs or name in graph.by_name:
        name += "_"
    return name
