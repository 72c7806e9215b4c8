"""Gathers from an input that only products of a chain multiply: an attention reads such keys and values where they lie.

Joined to what makes their positions, they would be written to memory first.
"""

from __future__ import annotations

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.operators.families import PRODUCTS
from tools.codegen.ir.views import is_view


def gathered_operands(graph: OperatorGraph) -> frozenset[str]:
    """Name these gathers; kept with the graph."""
    known: frozenset[str] | None = graph.__dict__.get("_gathered_operands")
    if known is None:
        gathers = [node for node in graph.nodes if node.op == "index" and _is_of_an_input(graph, node)]
        chained = _chained(graph) if gathers else frozenset[str]()
        found = frozenset(node.name for node in gathers if (readers := _readers(graph, node.name)) and readers <= chained)
        known = graph.__dict__["_gathered_operands"] = found
    return known


def _is_of_an_input(graph: OperatorGraph, node: Node) -> bool:
    source = node.args[0]
    returned = {ref.name for ref in graph.returned}
    return isinstance(source, Ref) and source.name in graph.inputs and node.name not in returned


def _readers(graph: OperatorGraph, name: str) -> set[str]:
    """Name what reads a value, seen through views."""
    found: set[str] = set()
    for user in graph.users.get(name, ()):
        found |= _readers(graph, user.name) if is_view(user) else {user.name}
    return found


def _chained(graph: OperatorGraph) -> frozenset[str]:
    """Name the products whose result goes into another one, and these others."""
    found: set[str] = set()
    for product in (node for node in graph.nodes if node.op in PRODUCTS):
        seen, rest = {product.name}, [product.name]
        while rest:
            for user in graph.users.get(rest.pop(), ()):
                if user.op in PRODUCTS:
                    found |= {product.name, user.name}
                elif user.name not in seen:
                    seen.add(user.name)
                    rest.append(user.name)
    return frozenset(found)
