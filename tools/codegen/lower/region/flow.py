"""How values go through a region, by its graph alone: which are made in it, which products are chained, and what leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tools.codegen.ir.constant_tensors import FILLS
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.operators.families import PRODUCTS
from tools.codegen.ir.views import is_view

SEEN_THROUGH = frozenset({
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "unsqueeze", "squeeze", "permute",
    "transpose", "t", "numpy_T", "mT", "expand", "expand_as", *FILLS,
})  # fmt: skip
"""Views of a member that nothing outside reads by itself."""

WORD = 64
"""Bits of the longest word."""


class Flow:
    """The ways of values through one region."""

    def __init__(self, graph: OperatorGraph, members: Sequence[str], seen_through: frozenset[str]) -> None:
        """Take the names of the region's nodes in order, and the views that are seen through."""
        self.graph, self.members, self.seen_through = graph, members, seen_through
        self.inside = frozenset(members)
        self.absorbed_views: set[str] = set()
        """Views that are part of an attention."""

    def is_internal(self, ref: Ref) -> bool:
        """Whether a value comes, through views, from a member."""
        node = self.graph.by_name.get(ref.name)
        if node is None:
            return False
        return node.name in self.inside or (is_view(node) and any(self.is_internal(each) for each in node.refs))

    def is_of_places(self, ref: Ref) -> bool:
        """Whether a value is places of bits, seen through views: each use lies along dimensions of its own."""
        node = self.graph.by_name.get(ref.name)
        while node is not None and not places_bits(node) and is_view(node) and len(node.refs) == 1:
            node = self.graph.by_name.get(node.refs[0].name)
        return node is not None and places_bits(node)

    @cached_property
    def multiplies(self) -> bool:
        """Whether a member is a matrix product."""
        return any(self.graph.by_name[name].op in PRODUCTS for name in self.members)

    @cached_property
    def chained(self) -> frozenset[str]:
        """Name the products among the members whose result another of them multiplies: the scores of an attention."""
        products = [name for name in self.members if self.graph.by_name[name].op in PRODUCTS]
        return frozenset(name for name in products[:-1] if self._reaches(name, frozenset(products) - {name}))

    def _reaches(self, name: str, wanted: frozenset[str]) -> bool:
        """Whether what a node makes goes, through members and views, into one of the `wanted` nodes."""
        for user in self.graph.users.get(name, ()):
            if user.name in wanted:
                return True
            if (user.name in self.inside or is_view(user)) and self._reaches(user.name, wanted):
                return True
        return False

    def escaping(self) -> Sequence[Ref]:
        """Values of members that are read outside, through views or not, or returned."""
        found: dict[Ref, None] = {}
        readers = {node.name: node for name in self.inside for node in self.graph.users.get(name, ()) if node.name not in self.inside}
        for node in sorted(readers.values(), key=lambda node: self.graph.order[node.name]):
            for ref in node.refs:
                if ref.name in self.inside and not self._absorbed(node):
                    found[ref] = None
        for ref in self.graph.returned:
            if ref.name in self.inside:
                found[ref] = None
        return tuple(found)

    def _absorbed(self, node: Node) -> bool:
        """Whether a view of a member is only read by members: then nothing leaves the region through it."""
        if not is_view(node) or (node.op not in self.seen_through and node.name not in self.absorbed_views):
            return False
        if any(ref.name == node.name for ref in self.graph.returned):
            return False
        return all(user.name in self.inside or self._absorbed(user) for user in self.graph.users.get(node.name, ()))


def places_bits(node: Node) -> bool:
    """Whether a node counts places of the bits of a word, which say where the numbers lie that are packed in it."""
    counted = node.op == "arange" and len(node.args) > 2 and all(type(arg) is int for arg in node.args[:3])
    return counted and 0 <= node.args[0] < node.args[1] <= WORD
