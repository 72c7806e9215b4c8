"""The alignment of traces that say the same in other words: a slice that takes everything is exported as an alias.

A loop's first chunk, or a sequence of one block, is such a slice at the smallest sizes alone. What has one row is contiguous already.
The traces are given the same words before they are laid over each other; what really differs stays different, and is found there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, find_refs, map_refs
from tools.codegen.ir.loop import Loop
from tools.codegen.trace.exported_graph import ExportedGraph
from tools.codegen.trace.rejoined import with_pieces_turned

COPY, VIEW = "aten.contiguous.default", "aten.view.default"
PUT = ("aten.index_put.default", "aten.index_put_.default")
SLICE, ALIAS = "aten.slice.Tensor", "aten.alias.default"


def agreed(exports: Sequence[ExportedGraph]) -> list[ExportedGraph]:
    """Write aliases as the slices that they are in other traces, and give all traces the first one's names."""
    exports = with_pieces_turned(without_lone(exports))
    if len({len(export.nodes) for export in exports}) != 1:
        return list(exports)
    every = list(zip(*(export.nodes for export in exports), strict=True))
    columns = [_alike_inside(_as_slices(_as_first_pieces(nodes, exports))) for nodes in every]
    names = [nodes[0].name for nodes in columns]
    found = []
    for place, export in enumerate(exports):
        own = {node.name: name for node, name in zip(export.nodes, names, strict=True)}
        nodes = tuple(
            replace(column[place], name=name, args=_named(column[place].args, own), kwargs=_named(column[place].kwargs, own))
            for column, name in zip(columns, names, strict=True)
        )
        effects = frozenset(own.get(name, name) for name in export.effects)
        found.append(replace(export, nodes=nodes, outputs=_named(export.outputs, own), effects=effects))
    return found


def without_lone(exports: Sequence[ExportedGraph]) -> Sequence[ExportedGraph]:
    """Leave out copies and views that only some traces have, and that change no value."""
    return _without_lone_views(_without_lone_copies(exports))


def _without_lone_copies(exports: Sequence[ExportedGraph]) -> Sequence[ExportedGraph]:
    """Leave out the copies into memory's order that not all traces have: they change no value."""
    if len({sum(node.target == COPY for node in export.nodes) for export in exports}) == 1:
        return exports
    places = [0 for _ in exports]
    lone: list[set[str]] = [set() for _ in exports]
    while any(place < len(export.nodes) for place, export in zip(places, exports, strict=True)):
        # None where a trace is at its end
        nodes = [next(iter(export.nodes[place : place + 1]), None) for place, export in zip(places, exports, strict=True)]
        copies = [number for number, node in enumerate(nodes) if node is not None and node.target == COPY]
        if 0 < len(copies) < len(nodes):
            for number in copies:
                lone[number].add(exports[number].nodes[places[number]].name)
                places[number] += 1
        elif len({node and node.target for node in nodes}) > 1:
            return exports
        else:
            places = [place + 1 for place in places]
    return [_without(export, names) for export, names in zip(exports, lone, strict=True)]


def _without_lone_views(exports: Sequence[ExportedGraph]) -> Sequence[ExportedGraph]:
    """Leave out the views that some traces have more of, by which what is put in place loses leading ones: it is broadcast without."""
    if len({len(export.nodes) for export in exports}) == 1:
        return exports
    return [_without(export, set(_stripping(export))) for export in exports]


def _stripping(export: ExportedGraph) -> Iterator[str]:
    """Name views that leave out leading dimensions of one element of what is put in place, and of nothing else."""
    shapes = {(name, 0): meta.shape for name, meta in export.inputs.items()}
    shapes |= {(node.name, index): meta.shape for node in export.nodes for index, meta in enumerate(node.outputs)}
    uses = [ref.name for ref in _read(export)]
    values = {node.args[2].name for node in export.nodes if node.target in PUT and isinstance(node.args[2], Ref)}
    for node in export.nodes:
        if node.target == VIEW and node.name in values and uses.count(node.name) == 1:
            before, after = shapes[node.args[0].name, node.args[0].index], node.outputs[0].shape
            if (*([(1,)] * (len(before) - len(after))), *after) == tuple(before):
                yield node.name


def _without(export: ExportedGraph, copies: set[str]) -> ExportedGraph:
    """Have what reads a copy read what was copied."""
    sources: dict[str, Any] = {}

    def of(tree: Any) -> Any:
        return map_refs(tree, lambda ref: sources.get(ref.name, ref))

    kept = []
    for node in export.nodes:
        now = replace(node, args=of(node.args), kwargs=of(node.kwargs))
        if node.name in copies:
            sources[node.name] = now.args[0]
        else:
            kept.append(now)
    return replace(export, nodes=tuple(kept), outputs=of(export.outputs))


def _as_slices(nodes: Sequence[Node]) -> Sequence[Node]:
    """Write the aliases among one operator's traces as slices of everything, where the others are slices."""
    if {node.target for node in nodes} != {SLICE, ALIAS}:
        return nodes
    like = next(node for node in nodes if node.target == SLICE)
    if len(like.args) != 4 or like.kwargs:
        return nodes
    dim = like.args[1]
    return [node if node.target == SLICE else _whole(node, dim) for node in nodes]


def _as_first_pieces(nodes: Sequence[Node], exports: Sequence[ExportedGraph]) -> Sequence[Node]:
    """Write cuts into pieces as the first piece, where some trace has no other and none is read: one row has a first half alone."""
    if {node.op for node in nodes} != {"chunk"} or all(len(node.outputs) > 1 for node in nodes):
        return nodes
    read = [ref.index for node, export in zip(nodes, exports, strict=True) for ref in _read(export) if ref.name == node.name]
    if any(read) or all(len(node.outputs) == 1 for node in nodes):
        return nodes
    return [replace(_whole(node, node.argument(2, "dim", 0)), kwargs={}, outputs=node.outputs[:1]) for node in nodes]


def _read(export: ExportedGraph) -> Iterator[Ref]:
    """List the values that operators read, and those that are returned."""
    for node in export.nodes:
        yield from node.refs
    yield from find_refs(export.outputs)


def _alike_inside(nodes: Sequence[Node]) -> Sequence[Node]:
    """Give the values of a loop's step the first trace's names: the exporter numbers those of a second loop by the first one's length."""
    first, bodies = nodes[0], [node.body for node in nodes if isinstance(node, Loop)]
    if not isinstance(first, Loop) or len(bodies) != len(nodes):
        return nodes
    if len({(len(body.nodes), len(body.inputs)) for body in bodies}) > 1:
        return nodes
    return [_with_names(node, first.body) for node in nodes if isinstance(node, Loop)]


def _with_names(loop: Loop, like: OperatorGraph) -> Loop:
    body = loop.body
    pairs = (*zip(body.inputs, like.inputs, strict=True), *zip((n.name for n in body.nodes), (n.name for n in like.nodes), strict=True))
    names = dict(pairs)
    inside = tuple(
        replace(node, name=names[node.name], args=_named(node.args, names), kwargs=_named(node.kwargs, names)) for node in body.nodes
    )
    inputs = {names[name]: meta for name, meta in body.inputs.items()}
    return replace(
        loop,
        body=replace(body, nodes=inside, inputs=inputs, outputs=_named(body.outputs, names)),
        whole=tuple(replace(each, name=names[each.name]) for each in loop.whole),
        sliced=tuple(replace(each, name=names[each.name]) for each in loop.sliced),
        carried=tuple(replace(each, name=names[each.name], after=_named(each.after, names)) for each in loop.carried),
        left=tuple(replace(each, ref=_named(each.ref, names)) for each in loop.left),
    )


def _whole(node: Node, dim: int) -> Node:
    return replace(node, target=SLICE, args=(node.args[0], dim, 0, node.outputs[0].shape[dim][0]))


def _named(tree: Any, names: Mapping[str, str]) -> Any:
    """Replace the names of values inside nested tuples, lists and dicts."""
    return map_refs(tree, lambda ref: replace(ref, name=names.get(ref.name, ref.name)))
