"""Parts of what a step makes (`chunk`, `split`, `slice` of the gates of a cell), each made by itself of parts of what it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.operators.families import CASTS
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.ir.sizes import Sizes, Varying, is_one
from tools.codegen.rewrite.loop_edit import LoopEdit, number

CUTS = ("chunk", "split", "split_with_sizes", "slice")
POINTWISE = {*ARITHMETIC, *LOGIC, *CASTS}


class WholeNeededError(ValueError):
    """A part cannot be made without the whole."""


def with_parts(loop: Loop, metas: Mapping[str, TensorMeta], graph: OperatorGraph) -> tuple[tuple[Node, ...], Loop]:
    """Make the parts that a loop's steps take by themselves, as far as that can be done; with what goes before the loop."""
    edit = LoopEdit(loop, metas, graph)
    for node in loop.body.nodes:
        cuts = _cuts(node, edit) if node.op in CUTS else None
        if cuts is None:
            edit.keep(node)
            continue
        made = len(edit.nodes), len(edit.before)
        try:
            parts = [_part(edit, edit.substitute(node.args[0]), *cut) for cut in cuts]
        except WholeNeededError:
            del edit.nodes[made[0] :], edit.before[made[1] :]
            edit.keep(node)
        else:
            edit.replaced |= {Ref(node.name, index): part for index, part in enumerate(parts)}
    return edit.done()


def _cuts(node: Node, edit: LoopEdit) -> list[tuple[int, Sizes, Sizes]] | None:
    """List the parts that a node takes: dimension, start and size in every trace; none where they cannot be told."""
    shape = edit.meta(node.args[0]).shape
    dim = node.argument(2 if node.op != "slice" else 1, "dim", 0) % len(shape)
    sizes = [meta.shape[dim] for meta in node.outputs]
    if node.op == "slice":
        first = node.argument(2, "start", 0) or 0
        if len(node.args) > 4 or isinstance(first, Ref):
            return None
        start = first.values if isinstance(first, Varying) else (first,) * len(shape[dim])
        starts = [tuple(int(at) % full if at else 0 for at, full in zip(start, shape[dim], strict=True))]
    else:
        none = tuple(0 for _ in shape[dim])
        starts = [none, *(tuple(map(sum, zip(*sizes[:place], strict=True))) for place in range(1, len(sizes)))]
    return [(dim, start, size) for start, size in zip(starts, sizes, strict=True)]


def _part(edit: LoopEdit, ref: Ref, dim: int, start: Sizes, size: Sizes) -> Ref:
    """Make a part of a value of the body."""
    meta = edit.meta(ref)
    found = edit.source(ref)
    if found is not None:
        source, step = found
        place = dim + 1 if step is not None and step <= dim else dim
        part = _view(edit, source, place, start, size)
        return edit.whole_input(ref.name, part) if step is None else edit.step_input(ref.name, part, step)
    node = next((node for node in edit.nodes if node.name == ref.name), None)
    if node is None or len(node.outputs) != 1:
        raise WholeNeededError
    cut = replace(meta, shape=(*meta.shape[:dim], size, *meta.shape[dim + 1 :]), contiguous=True, unit_last=True)
    if node.op in POINTWISE:
        args = tuple(_operand(edit, arg, len(meta.shape), dim, start, size) for arg in node.args)
    elif node.op == "linear" and dim == len(meta.shape) - 1:
        args = (node.args[0], *(_part(edit, arg, 0, start, size) if isinstance(arg, Ref) else arg for arg in node.args[1:]))
    elif node.op in ("matmul", "mm") and dim == len(meta.shape) - 1 and len(edit.meta(node.args[1]).shape) > 1:
        args = (node.args[0], _part(edit, node.args[1], len(edit.meta(node.args[1]).shape) - 1, start, size))
    elif node.op == "addmm" and dim == 1 and not node.kwargs:
        args = (_operand(edit, node.args[0], 2, 1, start, size), node.args[1], _part(edit, node.args[2], 1, start, size))
    else:
        raise WholeNeededError
    return edit.body_node(f"{node.name}_part", node, args, cut)


def _operand(edit: LoopEdit, arg: Any, rank: int, dim: int, start: Sizes, size: Sizes) -> Any:
    """Take the part of an operand that broadcasts, where it has the dimension."""
    if not isinstance(arg, Ref):
        return arg
    shape = edit.meta(arg).shape
    place = dim - (rank - len(shape))
    return arg if place < 0 or is_one(shape[place]) else _part(edit, arg, place, start, size)


def _view(edit: LoopEdit, source: Ref, dim: int, start: Sizes, size: Sizes) -> Ref:
    meta = edit.metas[source.name]
    stop = tuple(one + two for one, two in zip(start, size, strict=True))
    shape = (*meta.shape[:dim], size, *meta.shape[dim + 1 :])
    cut = replace(meta, shape=shape, contiguous=meta.contiguous and dim == 0)
    return edit.ahead(f"{source.name}_part", "aten.slice.Tensor", (source, dim, number(start), number(stop)), cut)
