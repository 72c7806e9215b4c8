"""Rows put in order in a tile kernel: the largest of packed keys, by one maximum after the other, by the least of them, or by a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import Fold
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.frame import neutral
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.shared.work import WARP
from tools.codegen.templates.tile.axes import TileAxes
from tools.codegen.templates.tile.body import TileBody

MOST_TURNS = 32
"""Elements that are picked one after the other, at most. On an H100 (2026-11-26) 32 of 2048 elements, 4096 rows in single warps, take 111
µs in turns, 110 by their least one and 110 by a network; the first is compiled in a fourth of the time."""
LEAST_SHARE = 4
"""Elements of a row for each that is picked, at least, where their least one is found first; of shorter rows all are sorted."""
TURN_WORK, EXCHANGE_WORK, COUNT_WORK = {"int32": 7.0, "int64": 9.0}, {"int32": 7.0, "int64": 12.0}, {"int32": 3.0, "int64": 5.0}
"""Instructions an element: of one maximum, which is then taken out, of one exchange, and of one count of those above a number. Those of
64 bits are told by times of an H100 (2026-11-26): of 4096 rows of 2048, in one warp and in two, a network finds 64 in 116 and 148 µs; 60
of 4096, 256 rows, take 30 µs in turns. By the machine code (sm_90) a count has 5."""
COUNTS = {"int32": 20, "int64": 24}
"""Bits of the least key that are tried before as many keys as are wanted reach it: a sign, an exponent, and what tells neighbours apart. An
assumption."""
FOUND_WORK = 80.0
"""Instructions an element by which those that are found get their places: a running sum, 13 shuffles with what they add, and masks; counted
in the machine code of sm_90."""
WRITTEN_EXCHANGE = 5.0
"""Operations of an exchange as they are written out for a thread: it makes 9 to 12 lines of PTX, another operation 1.7. A row of 4,096
elements in order takes 24 s to compile in 2 warps and 6 s in 8 (Triton 3.9, sm_90, a busy machine of two cores)."""
ORDER_BYTES = 1800.0
"""Machine code of an element of a thread that is put in order: of 64 of 2048 in one warp it has 118 KB, in two 50 KB, counted (sm_90)."""


class Way(StrEnum):
    """How the first elements of a row are found."""

    TURNS = "turns"
    LEAST = "least"
    NETWORK = "network"


def way_of(b: Builder, expr: int) -> Way:
    """Choose it by how many are picked of how many."""
    picked, length = count_picked(b, expr), b.count(b.exprs[expr].along)[0]
    if picked <= MOST_TURNS:
        return Way.TURNS
    return Way.LEAST if LEAST_SHARE * power_of_two(picked) <= power_of_two(length) else Way.NETWORK


def is_whole(b: Builder, expr: int) -> bool:
    """Whether a row is sorted, and nothing left out."""
    return power_of_two(count_picked(b, expr)) == power_of_two(b.count(b.exprs[expr].along)[0])


def order_work(b: Builder, expr: int) -> float:
    """Instructions an element of the row behind an order."""
    dtype, length, width = str(b.exprs[expr].dtype), power_of_two(b.count(b.exprs[expr].along)[0]), power_of_two(count_picked(b, expr))
    if way_of(b, expr) is Way.TURNS:
        return TURN_WORK[dtype] * count_picked(b, expr)
    if way_of(b, expr) is Way.LEAST:
        return COUNT_WORK[dtype] * COUNTS[dtype] + FOUND_WORK + EXCHANGE_WORK[dtype] * _exchanges(width, width) * width / length
    return EXCHANGE_WORK[dtype] * _exchanges(length, width)


def written_work(b: Builder, expr: int) -> float:
    """Operations an element of the row that an order's text has, one after the other: of its network, since turns and counts are loops."""
    length, width = power_of_two(b.count(b.exprs[expr].along)[0]), power_of_two(count_picked(b, expr))
    if way_of(b, expr) is Way.TURNS:
        return 0.0
    return WRITTEN_EXCHANGE * (_exchanges(length, width) if way_of(b, expr) is Way.NETWORK else _exchanges(width, width) * width / length)


def _exchanges(length: int, width: int) -> float:
    """Exchanges an element of a network: runs of the width are sorted; then each step keeps half, and sorts again."""
    stages = width.bit_length() - 1
    halves = sum(0.5**halved for halved in range(1, round(math.log2(length / width)) + 1))
    return (stages + 1) * (stages / 2 + halves)


def crossings(b: Builder, expr: int, warps: int, held: int) -> float:
    """Clocks in which shared memory passes on what the warps of a program exchange to put rows in order, `held` elements of each thread.

    Warps have the uppermost bits of a position in a row, or of the number of a row: those are exchanged the least often. What a thread has
    lies side by side, so that neighbours' elements lie in few banks.
    """
    picked, length = (power_of_two(count) for count in (count_picked(b, expr), b.count(b.exprs[expr].along)[0]))
    if way_of(b, expr) is Way.TURNS or warps == 1:
        return 0.0
    rows = held * warps * WARP / length
    if way_of(b, expr) is Way.LEAST:
        held, length = max(1, held * picked // length), picked
    bits, sorted_bits = length.bit_length() - 1, picked.bit_length() - 1
    first = max(0, bits - max(0, round(math.log2(warps) - math.log2(max(1.0, rows)))))
    steps = sum(max(1, sorted_bits - bit) for bit in range(first, bits))
    words = 2 if b.exprs[expr].dtype == "int64" else 1
    return steps * passed(warps, held, words, 2)


def passed(warps: int, results: int, words: int, shared: int, lanes: int = WARP) -> float:
    """Clocks in which `results` of every thread pass through shared memory, of which each is of `shared` warps, stored and read again.

    Only `lanes` of a warp have results of their own: the others, with which they share a sum, neither store nor ask for another bank.
    On an H100 (2026-11-26) two counts of 8 by 8 flags, of four warps, with 32 results of a thread, took 158 µs in 2,048 programs, one of
    them 86, none about 20; 4,096 elements in order took 63 µs in 16 warps, two such rows in 32 warps 124.
    """
    return 2.0 * warps * results * words * min(lanes, results * shared)


def waits(b: Builder, expr: int) -> float:
    """Count the barriers of a reduction, or of an order, in a program of several warps."""
    if b.exprs[expr].op != "order":
        return 2.0
    if way_of(b, expr) is Way.TURNS:
        return 2.0 * count_picked(b, expr)
    stages, length = power_of_two(count_picked(b, expr)).bit_length() - 1, power_of_two(b.count(b.exprs[expr].along)[0]).bit_length() - 1
    if way_of(b, expr) is Way.LEAST:
        # counts, then searches of those that are found, then what sorts them
        return 2.0 * COUNTS[str(b.exprs[expr].dtype)] + 2.0 * length + (stages + 1) * stages / 2
    return (stages + 1) * (stages / 2 + length - stages)


def is_spread(b: Builder, needed: Sequence[int], expr: int) -> bool:
    """Whether several elements are read at each place that an order finds, as rows of a table are: by itself, not by what is found next."""
    folds = {each for each in needed if b.exprs[each].along}
    reads = (record for record in map(b.exprs.__getitem__, needed) if record.op == "read")
    wider = (record.args for record in reads if b.leaves_of(record) - b.leaves_of(b.exprs[expr]))
    return any(expr in b.behind(args, folds) for args in wider)


def order_text(axes: TileAxes, body: TileBody, scope: Scope, expr: int, masked: str, over: list[Axis], *, spread: bool) -> str:
    """Write an order of masked keys: rows of a tile of two dimensions, and what is picked as a dimension of its own.

    Where what is read there `is_spread` it is laid anew.
    """
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
    scope.say(f"{keys} = tl.reshape({keys}, [{rows}, {length}])")
    made = f"tl.reshape({_found(axes, body, expr, keys, kept, over, picked)}, {axes.shape([*kept, picked])})"
    if not spread:
        return made
    # without this Triton keeps what was found as it lay along the keys, and a thread every element that is read there
    scope.say(f"{keys}_found = {made}")
    places = f"tl.broadcast_to(tl.arange(0, {axes.block(picked)}){axes.spread(picked)}, {axes.shape([*kept, picked])})"
    return f"tl.gather({keys}_found, {places}, axis={axes.place(picked)})"


def _found(axes: TileAxes, body: TileBody, expr: int, keys: str, kept: list[Axis], over: list[Axis], picked: Axis) -> str:
    """Write what finds the first of rows of keys, by calls of device functions."""
    dtype, way = str(body.b.exprs[expr].dtype), way_of(body.b, expr)
    count, least, width = body.space.monomial(picked.atoms), neutral(Fold.MAX, dtype), axes.block(picked)
    logs = [" + ".join(axes.log(axis) for axis in some) or "0" for some in (kept, over, [picked])]
    if way is Way.TURNS:
        name = "largest_in_turn" if dtype == "int32" else "largest_halves_in_turn"
        body.helpers[name] = None
        return f"{name}({keys}, {count}, {least}, {width})"
    body.helpers["largest_in_order"] = None
    if way is Way.NETWORK:
        return f"largest_in_order({keys}, {', '.join(logs)})"
    body.helpers["largest_above"] = None
    name = body.laid.setdefault(expr, (body.names.fresh(f"{body.name_of(expr)}_found"), kept, picked))[0]
    above = f"largest_above({keys}, {name}_ptr, {count}, {least}, {dtype.removeprefix('int')}, {width})"
    return f"largest_in_order({above}, {logs[0]}, {logs[2]}, {logs[2]})"


def count_picked(b: Builder, expr: int) -> int:
    """Count the elements that an order picks of a row."""
    return b.count((b.exprs[expr].extra[1],))[0]
