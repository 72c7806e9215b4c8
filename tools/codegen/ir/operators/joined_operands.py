"""Concatenations that only lay out both operands of a product along what it sums: the product of the wholes is a sum of products of pieces.

Latent attention joins the part of each head that knows its place to the part that does not, of queries and of keys; a kernel that reads
the pieces where they lie needs neither of the wholes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.codegen.ir.equation import spelled_out
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.operators.families import ATTENTIONS, PRODUCTS
from tools.codegen.ir.sizes import Sizes, is_one

MOST_PIECES = 4
"""Pieces of one operand that a kernel reads each by itself."""
TURNS = frozenset({"permute", "transpose", "t", "numpy_T", "mT"})
"""Views that only change the order of dimensions."""
SUMMED = {"matmul": (-1, -2), "bmm": (-1, -2), "linear": (-1, -1)}
"""The dimension of each operand that a product sums."""

Side = tuple[str, int]
"""A concatenation behind an operand, and which of its dimensions the product sums."""


def joined_operands(graph: OperatorGraph) -> Mapping[str, frozenset[str]]:
    """Name, for each such concatenation, the products and the other concatenations that a kernel must have with it; kept with the graph."""
    known: dict[str, frozenset[str]] | None = graph.__dict__.get("_joined_operands")
    if known is None:
        known = graph.__dict__["_joined_operands"] = _found(graph)
    return known


def _found(graph: OperatorGraph) -> dict[str, frozenset[str]]:
    if not any(node.op == "cat" for node in graph.nodes):
        return {}
    pairs = {node.name: pair for node in graph.nodes if (pair := _pair(graph, node)) is not None}
    readers = {name: _readers(graph, name) for pair in pairs.values() for name in pair}
    while lost := {name for name, pair in pairs.items() if not all(readers[cat] <= pairs.keys() for cat in pair)}:
        pairs = {name: pair for name, pair in pairs.items() if name not in lost}
    found: dict[str, frozenset[str]] = {}
    for name, pair in pairs.items():
        for cat in pair:
            found[cat] = found.get(cat, frozenset()) | {name, *pair}
    return found


def _pair(graph: OperatorGraph, node: Node) -> tuple[str, str] | None:
    """Find the concatenations behind both operands of a product whose result goes on to another one, or of an attention."""
    sides = [_side(graph, ref, place) for ref, place in _summed(graph, node)]
    if len(sides) != 2 or sides[0] is None or sides[1] is None:
        return None
    widths = [_widths(graph, side) for side in (sides[0], sides[1])]
    if widths[0] is None or widths[0] != widths[1] or (node.op not in ATTENTIONS and not _goes_on(graph, node)):
        return None
    return sides[0][0], sides[1][0]


def _summed(graph: OperatorGraph, node: Node) -> Iterator[tuple[object, int]]:
    """Yield both operands of a product, each with the dimension that is summed."""
    if node.op in ATTENTIONS:
        yield from ((node.argument(0, "query"), -1), (node.argument(1, "key"), -1))
    elif node.op in SUMMED:
        yield from zip(node.args[:2], SUMMED[node.op], strict=True)
    elif node.op == "einsum":
        operands = node.args[1]
        spelled = spelled_out(str(node.args[0]), [len(graph.meta(ref).shape) for ref in operands])
        letters = set.intersection(*map(set, spelled[0])) - set(spelled[1]) if spelled and len(operands) == 2 else set[str]()
        if spelled and len(letters) == 1:
            letter = letters.pop()
            yield from ((ref, word.index(letter)) for ref, word in zip(operands, spelled[0], strict=True))


def _side(graph: OperatorGraph, ref: object, place: int) -> Side | None:
    """Find the concatenation behind an operand, through views that turn it, and its dimension in the place of the operand's."""
    node = graph.by_name.get(ref.name) if isinstance(ref, Ref) else None
    if node is None:
        return None
    rank = len(node.outputs[0].shape)
    if node.op == "cat":
        return (node.name, place % rank) if node.argument(1, "dim", 0) % rank == place % rank else None
    return _side(graph, node.args[0], turned(node, tuple(range(rank)))[place]) if node.op in TURNS else None


def turned(node: Node, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Put dimensions into the order that a view gives them."""
    if node.op == "permute":
        return tuple(dims[place] for place in node.args[1])
    if node.op == "transpose":
        one, two = node.args[1] % len(dims), node.args[2] % len(dims)
        return tuple(dims[{one: two, two: one}.get(place, place)] for place in range(len(dims)))
    return (*dims[:-2], *reversed(dims[-2:])) if node.op == "mT" else tuple(reversed(dims))


def _widths(graph: OperatorGraph, side: Side) -> tuple[Sizes, ...] | None:
    """Give the sizes of the pieces; None where there are too many of them, or one has a single element, or another dtype."""
    node = graph.by_name[side[0]]
    metas = [graph.meta(ref) for ref in node.args[0]]
    if not 1 < len(metas) <= MOST_PIECES or any(meta.dtype != node.outputs[0].dtype for meta in metas):
        return None
    if any(len(meta.shape) != len(node.outputs[0].shape) for meta in metas):
        return None
    widths = tuple(meta.shape[side[1]] for meta in metas)
    return None if any(is_one(width) or not all(width) for width in widths) else widths


def _readers(graph: OperatorGraph, name: str) -> frozenset[str]:
    """Name what reads a value, seen through views that turn it: the value itself, where it is returned."""
    found: set[str] = set()
    rest = [name]
    returned = {ref.name for ref in graph.returned}
    while rest:
        one = rest.pop()
        found |= {one} & returned
        for user in graph.users.get(one, ()):
            if user.op in TURNS:
                rest.append(user.name)
            else:
                found.add(user.name)
    return frozenset(found)


def _goes_on(graph: OperatorGraph, node: Node) -> bool:
    """Whether what a product makes goes into another product."""
    seen: set[str] = set()
    rest = [node.name]
    while rest:
        for user in graph.users.get(rest.pop(), ()):
            if user.op in PRODUCTS:
                return True
            if user.name not in seen:
                seen.add(user.name)
                rest.append(user.name)
    return False
