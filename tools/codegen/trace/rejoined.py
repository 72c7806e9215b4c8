"""Pieces of a tensor that are joined again along another dimension, as heads are: dimensions turned, however many pieces there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref, TensorMeta, find_refs
from tools.codegen.trace.exported_graph import ExportedGraph

CUTS = {"unbind": 1, "chunk": 2, "split": 2, "split_with_sizes": 2}
"""Operators that cut a tensor into pieces, and where their dimension is among their arguments."""
JOINS = ("cat", "stack")


def with_pieces_turned(exports: Sequence[ExportedGraph]) -> Sequence[ExportedGraph]:
    """Write what is cut and joined again as dimensions that are turned, where traces differ, as they do in how many pieces there are."""
    if len({export.signature for export in exports}) == 1:
        return exports
    return [replace(export, nodes=_without_unread(export, _turned(export))) for export in exports]


def _turned(export: ExportedGraph) -> list[Node]:
    metas = dict(export.inputs) | {node.name: node.outputs[0] for node in export.nodes if len(node.outputs) == 1}
    by_name = {node.name: node for node in export.nodes}
    found: list[Node] = []
    for node in export.nodes:
        found += list(_as_turned(node, by_name, metas)) or [node]
    return found


def _as_turned(join: Node, by_name: Mapping[str, Node], metas: Mapping[str, TensorMeta]) -> Iterator[Node]:
    """List the operators that a join of all pieces of one tensor is, the last under its name; none where it is another one."""
    cut = _cut(join, by_name)
    if cut is None or not isinstance(cut.args[0], Ref) or cut.args[0].index or cut.args[0].name not in metas:
        return
    before, first = metas[cut.args[0].name], cut.outputs[0]
    count, opened, single = len(cut.outputs), list(before.written), cut.op == "unbind"
    dim = cut.argument(CUTS[cut.op], "dim", 0) % len(opened)
    # a dimension of the pieces, and another of what is in each
    if not single:
        opened[dim : dim + 1] = [count, first.written[dim]]
    rank = len(join.outputs[0].shape)
    to = join.argument(1, "dim", 0) % rank
    if to == dim and not single and join.op == "cat":
        # at other sizes the last piece may be a shorter one, as it may be nowhere else
        return
    order = [place for place in range(len(opened)) if place != dim]
    order.insert(to, dim)
    turned = [opened[place] for place in order]
    source = cut.args[0]
    for step, target, argument, shape in (
        ("opened", "aten.reshape.default", opened, opened),
        ("turned", "aten.permute.default", order, turned),
        ("laid", "aten.reshape.default", list(join.outputs[0].written), list(join.outputs[0].written)),
    ):
        contiguous = step == "laid"
        meta = TensorMeta(tuple((size,) for size in shape), before.dtype, contiguous=contiguous, unit_last=contiguous)
        yield Node(f"{join.name}_{step}", target, (source, argument), {}, (meta,))
        source = Ref(f"{join.name}_{step}")
    # no result of a join lies in the memory of what is joined
    yield Node(join.name, "aten.clone.default", (source,), {}, join.outputs)


def _cut(join: Node, by_name: Mapping[str, Node]) -> Node | None:
    """Give the operator whose pieces, all of one size, are joined, each once and in their order."""
    if join.op not in JOINS or not isinstance(join.args[0], tuple | list) or not all(isinstance(ref, Ref) for ref in join.args[0]):
        return None
    refs: Sequence[Ref] = join.args[0]
    cut = by_name.get(refs[0].name) if refs else None
    if cut is None or cut.op not in CUTS or [(ref.name, ref.index) for ref in refs] != [(cut.name, i) for i in range(len(cut.outputs))]:
        return None
    return cut if len({piece.shape for piece in cut.outputs}) == 1 else None


def _without_unread(export: ExportedGraph, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Leave out cuts whose pieces nobody reads any more."""
    read = {ref.name for node in nodes for ref in node.refs} | {ref.name for ref in find_refs(export.outputs)}
    return tuple(node for node in nodes if node.op not in CUTS or node.name in read)
