"""Products of a loop's steps that nothing carried enters, made for all steps at once before the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.loop import Loop
from tools.codegen.rewrite.loop_edit import LoopEdit


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
