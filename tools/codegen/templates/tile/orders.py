"""Rows put in order in a tile kernel: the largest of packed keys, by one maximum after the other or by a bitonic network."""

from __future__ import annotations

import math

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import Fold
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.frame import neutral
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.tile.axes import TileAxes
from tools.codegen.templates.tile.body import TileBody

MOST_TURNS = 16
"""Elements that are picked one after the other, at most; more are sorted."""
TURN_WORK, EXCHANGE_WORK = {"int32": 11.0, "int64": 15.0}, {"int32": 10.0, "int64": 18.0}
"""Instructions an element: of one maximum, which is then taken out, and of one exchange. Read off an H100's times (2026-11-26, triton 3.6):
8 of 256 elements, 16,384 rows, take 16 µs in bfloat16; 4096 rows of 1024 are sorted in 134 µs by single warps, and 64 of 2048 are picked in
153. Maxima of 64 bits whole took 34 µs for the first; by halves a turn has 218 instructions for 382. 32-bit exchanges were not timed."""


def picks_in_turn(b: Builder, expr: int) -> bool:
    """Whether the elements of an order are picked one after the other."""
    return _picked(b, expr) <= MOST_TURNS


def order_work(b: Builder, expr: int) -> float:
    """Instructions an element of the row behind an order."""
    dtype, length, width = str(b.exprs[expr].dtype), power_of_two(b.count(b.exprs[expr].along)[0]), power_of_two(_picked(b, expr))
    if picks_in_turn(b, expr):
        return TURN_WORK[dtype] * _picked(b, expr)
    stages = width.bit_length() - 1
    # runs of the width are sorted; then each step keeps half, and sorts again
    halves = sum(0.5**halved for halved in range(1, round(math.log2(length / width)) + 1))
    return EXCHANGE_WORK[dtype] * (stages + 1) * (stages / 2 + halves)


def waits(b: Builder, expr: int) -> float:
    """Count the barriers of a reduction, or of an order, in a program of several warps."""
    if b.exprs[expr].op != "order":
        return 2.0
    if picks_in_turn(b, expr):
        return 2.0 * _picked(b, expr)
    stages = power_of_two(_picked(b, expr)).bit_length() - 1
    return (stages + 1) * (stages / 2 + math.log2(power_of_two(b.count(b.exprs[expr].along)[0])) - stages)


def order_text(axes: TileAxes, body: TileBody, scope: Scope, expr: int, masked: str, over: list[Axis]) -> str:
    """Write an order of masked keys: rows of a tile of two dimensions, and what is picked as a dimension of its own."""
    record = body.b.exprs[expr]
    own = body.b.leaves_of(body.b.exprs[record.args[0]])
    kept = [axis for axis in axes.shaped if axis not in over and set(axis.atoms) & own]
    (picked,) = (axis for axis in axes.walked if set(axis.atoms) & set(body.b.atoms.leaves((record.extra[1],))))
    keys = body.names.fresh(f"{body.name_of(expr)}_keys")
    scope.say(f"{keys} = {masked}")
    if [axis for axis in axes.shaped if axis in kept or axis in over] != [*kept, *over]:
        turned = [*(axis for axis in axes.shaped if axis not in over), *over]
        scope.say(f"{keys} = tl.permute({keys}, [{', '.join(str(axes.place(axis)) for axis in turned)}])")
    rows, length = (" * ".join(axes.block(axis) for axis in some) or "1" for some in (kept, over))
    if picks_in_turn(body.b, expr):
        name = "largest_in_turn" if record.dtype == "int32" else "largest_halves_in_turn"
        arguments = [body.space.monomial(picked.atoms), neutral(Fold.MAX, record.dtype), axes.block(picked)]
    else:
        name = "largest_in_order"
        arguments = [" + ".join(axes.log(axis) for axis in some) or "0" for some in (kept, over, [picked])]
    body.helpers[name] = None
    scope.say(f"{keys} = tl.reshape({keys}, [{rows}, {length}])")
    return f"tl.reshape({name}({', '.join([keys, *arguments])}), {axes.shape([*kept, picked])})"


def _picked(b: Builder, expr: int) -> int:
    return b.count((b.exprs[expr].extra[1],))[0]
