"""Constant folding: operators on parameters alone run once for all calls, in `pack_weights`; the graph is left without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.operators.families import PRODUCTS, ROW_OPERATORS
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.ir.sizes import Varying
from tools.codegen.ir.views import is_view

CAST = "to"
"""What autocast does to a weight in every call, among others."""
FOLDABLE = {*ARITHMETIC, *LOGIC, *ROW_OPERATORS, *PRODUCTS, "cat", CAST}
"""Operators that give the same result whenever they are run."""


def foldable_constants(graph: OperatorGraph) -> tuple[str, ...]:
    """Name the operators that read nothing but fixed parameters, and one another, and whose results forward does not return; in order."""
    written = {ref.name for name in graph.effects if name in graph.by_name for ref in graph.by_name[name].refs[:1]}
    constant = set(graph.fixed) - written
    returned = {name for ref in graph.returned for name in _viewed(graph, ref)}
    found: list[str] = []
    for node in graph.nodes:
        if not node.refs or not {ref.name for ref in node.refs} <= constant or not _is_foldable(graph, node):
            continue
        if is_view(node):
            constant.add(node.name)
        elif node.name not in returned:
            constant.add(node.name)
            found.append(node.name)
    return tuple(found)


def with_prepacked(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Make the results of the named operators, and of what they need, inputs that `pack_weights` makes; what cannot be folded stays."""
    foldable, chosen = frozenset(foldable_constants(graph)), set[str]()
    rest = [name for name in names if name in foldable]
    while rest:
        name = rest.pop()
        if name not in chosen:
            chosen.add(name)
            rest += [source for ref in graph.by_name[name].refs for source in _viewed(graph, ref) if source in foldable]
    if not chosen:
        return graph
    moved = tuple(node for node in graph.nodes if node.name in chosen)
    return replace(
        graph,
        nodes=tuple(node for node in graph.nodes if node.name not in chosen),
        inputs={**graph.inputs, **{node.name: node.outputs[0] for node in moved}},
        fixed=graph.fixed | chosen,
        prepacked=(*graph.prepacked, *moved),
    )


def packed_sources(graph: OperatorGraph) -> tuple[Ref, ...]:
    """List the parameters that the packed operators read, each once."""
    made = {node.name for node in graph.prepacked}
    read = (source for node in graph.prepacked for ref in node.refs for source in _viewed(graph, ref))
    return tuple(dict.fromkeys(Ref(name) for name in read if name not in made))


def _is_foldable(graph: OperatorGraph, node: Node) -> bool:
    return (
        (node.op in FOLDABLE or is_view(node))
        and node.name not in graph.effects
        and len(node.outputs) == 1
        and not any(_varies((node.args, tuple(node.kwargs.values()))))
    )


def _varies(tree: Any) -> Iterator[bool]:
    """Whether a number among arguments comes from the sizes of the inputs."""
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from _varies(item)
    else:
        yield isinstance(tree, Varying)


def _viewed(graph: OperatorGraph, ref: Ref) -> Iterator[str]:
    """Name what a value is a view of."""
    node = graph.by_name.get(ref.name)
    if node is None or not is_view(node):
        yield ref.name
    else:
        for source in node.refs:
            yield from _viewed(graph, source)
