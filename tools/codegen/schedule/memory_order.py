"""Which operators wait for others that share a buffer's memory: who reads it for writers before, who writes it for all before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tools.codegen.ir.graph import OperatorGraph, Ref
from tools.codegen.ir.views import is_view


def waits(graph: OperatorGraph) -> Mapping[str, frozenset[str]]:
    """Name, for each operator, those before it that it shares a buffer's memory with, of which one writes; kept with the graph.

    What is written through a view of a buffer, a row of a cache, is nothing that a later reader of the buffer names.
    """
    known: dict[str, frozenset[str]] | None = graph.__dict__.get("_waits")
    if known is None:
        known = graph.__dict__["_waits"] = _found(graph)
    return known


def _found(graph: OperatorGraph) -> dict[str, frozenset[str]]:
    written = {base for name in graph.effects if name in graph.by_name and (base := _base(graph, graph.by_name[name].args[0]))}
    readers, writers = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    found: dict[str, frozenset[str]] = {}
    for node in graph.nodes if written else ():
        writes = node.name in graph.effects
        if is_view(node) and not writes:
            continue
        target = _base(graph, node.args[0]) if writes else None
        read = {base for ref in node.refs if (base := _base(graph, ref)) in written}
        before = {name for base in read for name in writers[base]} | (readers[target] | writers[target] if target else set())
        if before:
            found[node.name] = frozenset(before)
        for base in read - {target}:
            readers[base].add(node.name)
        if target:
            writers[target].add(node.name)
    return found


def _base(graph: OperatorGraph, ref: object) -> str | None:
    """Name the input of forward, a buffer say, whose memory a value is, seen through views and writes; None of what was made."""
    if not isinstance(ref, Ref):
        return None
    node = graph.by_name.get(ref.name)
    if node is None:
        return ref.name
    return _base(graph, node.args[0]) if is_view(node) or node.name in graph.effects else None
