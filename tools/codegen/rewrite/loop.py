"""The body of a loop in canonical form, with what can go before the loop taken out of it.

A product that nothing carried enters is made for all steps at once. A part of a step's value (`chunk` of the gates of a recurrent cell) is
made by itself, of the parts of what it is made of: of an input it is a view before the loop, of a product one with fewer columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta, find_refs
from tools.codegen.ir.loop import Loop
from tools.codegen.rewrite.loop_edit import LoopEdit
from tools.codegen.rewrite.loop_parts import with_parts
from tools.codegen.rewrite.rewriter import Rewriter


def rewritten_body(rewrite: Callable[[OperatorGraph], OperatorGraph]) -> Callable[[Rewriter, Node], Sequence[Node]]:
    """Make the rule that rewrites a loop's body as the graph around it is."""

    def rule(rewriter: Rewriter, node: Node) -> Sequence[Node]:
        assert isinstance(node, Loop)
        loop = with_body(node, rewrite(node.body))
        before, loop = with_parts(loop, rewriter.metas, rewriter.graph)
        more, loop = with_products_before(loop, {**rewriter.metas, **{each.name: each.outputs[0] for each in before}}, rewriter.graph)
        return (*before, *more, without_unread(loop))

    return rule


def with_body(loop: Loop, body: OperatorGraph) -> Loop:
    """Give a loop another body, of which the same values are wanted in the same order."""
    now = dict(zip(loop.body.outputs, body.outputs, strict=True))
    carried = tuple(replace(one, after=now[one.after]) for one in loop.carried)
    left = tuple(replace(one, ref=now[one.ref]) for one in loop.left)
    return replace(loop, body=body, carried=carried, left=left)


def without_unread(loop: Loop) -> Loop:
    """Leave out nodes and inputs of the body that nothing reads, and arguments that no input is made of."""
    wanted = {ref.name for ref in find_refs(loop.body.outputs)}
    nodes: list[Node] = []
    for node in reversed(loop.body.nodes):
        if node.name in wanted:
            nodes.append(node)
            wanted |= {ref.name for ref in node.refs}
    whole = tuple(one for one in loop.whole if one.name in wanted)
    sliced = tuple(one for one in loop.sliced if one.name in wanted)
    places = sorted({*(one.place for one in whole), *(one.place for one in sliced), *(one.place for one in loop.carried)})
    now = {place: number for number, place in enumerate(places)}
    kept = {*(one.name for one in whole), *(one.name for one in sliced), *(one.name for one in loop.carried)}
    inputs = {name: meta for name, meta in loop.body.inputs.items() if name in kept}
    return replace(
        loop,
        args=tuple(loop.args[place] for place in places),
        body=replace(loop.body, inputs=inputs, nodes=tuple(reversed(nodes))),
        whole=tuple(replace(one, place=now[one.place]) for one in whole),
        sliced=tuple(replace(one, place=now[one.place]) for one in sliced),
        carried=tuple(replace(one, place=now[one.place]) for one in loop.carried),
    )


def with_products_before(loop: Loop, metas: Mapping[str, TensorMeta], graph: OperatorGraph) -> tuple[tuple[Node, ...], Loop]:
    """Take products of a step's input and weights out of a loop; with what goes before it."""
    edit = LoopEdit(loop, metas, graph)
    for node in loop.body.nodes:
        now = replace(node, args=edit.substitute(node.args), kwargs=edit.substitute(node.kwargs))
        if not _goes_before(edit, now):
            edit.keep(now)
    return edit.done()


def _goes_before(edit: LoopEdit, node: Node) -> bool:
    """Put a product before the loop; False where it is none, or has to stay."""
    if node.op not in ("linear", "matmul", "mm") or node.kwargs:
        return False
    given, *others = [edit.source(arg) for arg in node.args if isinstance(arg, Ref)]
    if given is None or any(other is None or other[1] is not None for other in others):
        return False
    source, step = given
    weight = edit.metas[others[0][0].name] if others and others[0] else None
    meta = edit.metas[source.name]
    if step is None or weight is None or len(weight.shape) != 2 or step == len(meta.shape) - 1 or len(meta.shape) < 2:
        return False
    target = "aten.matmul.default" if node.op == "mm" else node.target
    wide = weight.shape[0] if node.op == "linear" else weight.shape[1]
    made = TensorMeta((*meta.shape[:-1], wide), node.outputs[0].dtype)
    result = edit.ahead(node.name, target, (source, *(other[0] for other in others if other)), made)
    edit.replaced[Ref(node.name)] = edit.step_input(node.name, result, step)
    return True
