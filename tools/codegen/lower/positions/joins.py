"""Lower what is made of several tensors one after the other, or of one with a part replaced: each element is of one of them."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.reindex import flat, spread
from tools.codegen.ir.sizes import Sizes
from tools.codegen.lower.positions.chosen import chosen
from tools.codegen.lower.positions.view_rules import numbers, within
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule

MOST_PIECES = 16
"""Pieces of one concatenation: each element of the result tests for them."""


RARE = 8
"""Positions of which a single one is asked for before it is read."""
LEAST_SHARE, LONG = 0.3, 8
"""Part of a concatenation below which a piece is made by itself, where each of its elements takes a reduction of so many others: a kernel
makes every piece at every position, and keeps one."""


def joined(
    low: GeneralLowering, found: Sequence[Lowered], place: int, sizes: Sequence[Sizes], dtype: str, *, alike: bool = True
) -> Lowered:
    """Lay values one after the other along a dimension: each element is of the piece that its position falls into.

    Of two pieces what is `alike` is made once.
    """
    b = low.b
    for each, size in zip(found, sizes, strict=True):
        _check_share(low, each.value, size[0], sum(other[0] for other in sizes))
    others = [Lowered(each.value, (*each.dims[:place], (), *each.dims[place + 1 :])) for each in found]
    kept, dims = low.aligned(others)
    whole = b.atoms.dims((tuple(sum(each) for each in zip(*sizes, strict=True)),))[0]
    position, start = flat(b, whole), (0,) * low.traces
    pieces: list[tuple[Value, Value]] = []
    for number, (each, one, size) in enumerate(zip(found, kept, sizes, strict=True)):
        stop = tuple(a + n for a, n in zip(start, size, strict=True))
        before, after = position < b.number(stop), b.call("ge", position, b.number(start))
        inside = before if number == 0 else after if number == len(found) - 1 else b.call("and", after, before)
        at = spread(b, each.dims[place], position - b.number(start) if any(start) else position)
        if alike and not at and any(dims[place + 1 :]):
            at = _as_it_is(low, one.value, sum(other[0] for other in sizes))
        value = low.take(one, at, one.dims, inside).value
        pieces.append((before, b.compute(value, COMPUTE[dtype])))
        start = stop
    value = pieces[-1][1]
    if len(pieces) == 2 and alike:
        value = chosen(b, pieces[0][0], b.call("ge", position, b.number(sizes[0])), pieces[0][1], value)
        pieces = pieces[1:]
    for before, piece in reversed(pieces[:-1]):
        value = b.call("where", before, piece, value)
    return Lowered(value, (*dims[:place], whole, *dims[place + 1 :]))


def _check_share(low: GeneralLowering, value: Value, own: int, every: int) -> None:
    """Refuse a small piece that a reduction makes, so many positions of all along the dimension that pieces lie along."""
    if own < LEAST_SHARE * every and low.reduces_over(value) >= LONG:
        raise LoweringError("a small piece of a larger tensor that a reduction makes is not made for all of it")


def _as_it_is(low: GeneralLowering, value: Value, among: int) -> dict[int, Value]:
    """Give the positions at which a single element among many is read anyway, so that it is read where it is wanted alone.

    One new key behind 511 earlier ones was read at each of 512 positions. What has no dimension after these is one number a row.
    """
    b = low.b
    behind = b.behind([value.id])
    if among < RARE or any(b.exprs[expr].op in ("reduce", "scan", "order", "pick", "join") for expr in behind):
        return {}
    return {atom: b.index((atom,)) for atom in b.leaves_of(b.exprs[value.id])}


def _cat(low: GeneralLowering, node: Node) -> None:
    refs, out = node.args[0], node.outputs[0]
    metas = [low.graph.meta(ref) for ref in refs]
    if not 1 < len(refs) <= MOST_PIECES or any(len(meta.shape) != len(out.shape) or meta.dtype != out.dtype for meta in metas):
        raise LoweringError(f"{node.target} of tensors of several dtypes or ranks, or of more than {MOST_PIECES}, is not generated")
    place = int(node.argument(1, "dim", 0)) % len(out.shape)
    found = joined(low, [low.value(ref) for ref in refs], place, [meta.shape[place] for meta in metas], out.dtype)
    low.define(node, found.value, found.dims)


def _stack(low: GeneralLowering, node: Node) -> None:
    refs, out = node.args[0], node.outputs[0]
    if not 1 < len(refs) <= MOST_PIECES or any(low.graph.meta(ref).dtype != out.dtype for ref in refs):
        raise LoweringError(f"{node.target} of tensors of several dtypes, or of more than {MOST_PIECES}, is not generated")
    place = int(node.argument(1, "dim", 0)) % len(out.shape)
    values = [low.value(ref) for ref in refs]
    one = (1,) * low.traces
    opened = [Lowered(each.value, (*each.dims[:place], (), *each.dims[place:])) for each in values]
    # neighbours that are read together are told by their positions
    found = joined(low, opened, place, [one] * len(refs), out.dtype, alike=False)
    low.define(node, found.value, found.dims)


def _slice_scatter(low: GeneralLowering, node: Node) -> None:
    """A tensor with a part of it replaced: each element is of one or of the other."""
    base, source, b = low.value(node.args[0]), low.value(node.args[1]), low.b
    shape = node.outputs[0].shape
    if node.op == "select_scatter":
        place = int(node.args[2]) % len(shape)
        start, step, count = within(numbers(low, node.args[3]), shape[place]), (1,) * low.traces, (1,) * low.traces
        source = Lowered(source.value, (*source.dims[:place], (), *source.dims[place:]))
    else:
        place = int(node.argument(2, "dim", 0)) % len(shape)
        start = within(numbers(low, node.argument(3, "start")), shape[place])
        step = numbers(low, node.argument(5, "step", 1), 1)
        count = low.graph.meta(node.args[1]).shape[place]
    _check_share(low, source.value, count[0], shape[place][0])
    whole = base.dims[place]
    moved = flat(b, whole) - b.number(start) if any(start) else flat(b, whole)
    inside = b.call("and", b.call("ge", moved, 0), moved < b.number(tuple(map(operator.mul, count, step))))
    if set(step) != {1}:
        inside = b.call("and", inside, b.call("eq", b.call("mod", moved, b.number(step)), 0))
        moved = b.call("floordiv", moved, b.number(step))
    opened = Lowered(source.value, (*source.dims[:place], (), *source.dims[place + 1 :]))
    (kept, other), dims = low.aligned([Lowered(base.value, base.dims), opened])
    at = spread(b, source.dims[place], moved)
    if not at and any(dims[place + 1 :]):
        at = _as_it_is(low, other.value, shape[place][0])
    taken = low.take(other, at, other.dims, inside)
    low.define(node, b.call("where", inside, b.compute(taken.value, COMPUTE[node.outputs[0].dtype]), kept.value), dims)


GENERAL_JOIN_RULES: dict[str, GeneralRule] = {
    "cat": _cat, "stack": _stack, "slice_scatter": _slice_scatter, "select_scatter": _slice_scatter,
}  # fmt: skip
"""Operators by name."""
