"""Values that are made again where they are read, instead of being written by one kernel and read by others.

What a cast, a sum of two or a gather makes is often no smaller than what it reads: then a kernel that needs it may as well make it itself,
and nobody writes it down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tools.codegen.ir.graph import Copied, Node, OperatorGraph, Ref, map_refs
from tools.codegen.ir.views import is_view

Recomputed = tuple[str, ...]
"""A node, the name of its copy, and the nodes that read the copy in its place."""


def with_recomputed(graph: OperatorGraph, copies: Sequence[Recomputed]) -> OperatorGraph:
    """Give readers copies of their own, where that has not been done yet; what nobody reads any more is left out."""
    for node, name, *readers in copies:
        if node in graph.by_name and name not in graph.by_name and set(readers) <= graph.by_name.keys():
            graph = _copied(graph, node, name, frozenset(readers))
    return _without_unread(graph) if copies else graph


def _copied(graph: OperatorGraph, node: str, name: str, readers: frozenset[str]) -> OperatorGraph:
    """Copy a node, with the views between it and its readers, to just before the first of these."""
    copies: dict[str, Node] = {}

    def own(ref: Ref) -> Ref:
        source = graph.by_name.get(ref.name)
        if source is None or not (ref.name == node or (is_view(source) and _reaches(graph, source, node))):
            return ref
        new = name if ref.name == node else f"{name}_{ref.name}"
        if new not in copies:
            changed = source if ref.name == node else _changed(source, own)
            copies[new] = Copied(new, changed.target, changed.args, changed.kwargs, changed.outputs)
        return Ref(new, ref.index)

    nodes: list[Node] = []
    for each in graph.nodes:
        known = len(copies)
        changed = _changed(each, own) if each.name in readers else each
        nodes += [*islice(copies.values(), known, None), changed]
    return replace(graph, nodes=tuple(nodes))


def _reaches(graph: OperatorGraph, view: Node, node: str) -> bool:
    """Whether views alone lie between a view and a node."""
    sources = [graph.by_name.get(ref.name) for ref in view.refs]
    return any(source is not None and (source.name == node or (is_view(source) and _reaches(graph, source, node))) for source in sources)


def _changed(node: Node, own: Any) -> Node:
    return replace(node, args=map_refs(node.args, own), kwargs=map_refs(node.kwargs, own))


def _without_unread(graph: OperatorGraph) -> OperatorGraph:
    read = {ref.name for ref in graph.returned}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in read or node.name in graph.effects or not node.outputs:
            read |= {ref.name for ref in node.refs}
            kept.append(node)
    return replace(graph, nodes=tuple(reversed(kept)))
