"""Sectors of an access: the pieces of 32 bytes that a tile of a tensor touches, whether all of their bytes are wanted or not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tools.codegen.templates.shared.work import LINE, SECTOR
from tools.hardware import rates

BANK, BANKS = 4, 32
"""Bytes of a bank of the L1, and how many there are."""
ANYWHERE = 4129
"""Elements by which neighbours at positions that are data are taken to lie apart: in lines and banks of their own."""

Groups = tuple[tuple[int, ...], ...]
Step = tuple[int | None, int]
"""One axis of a tile: elements between neighbours in memory (0: the same, None: anywhere), and how many there are."""


def sectors(steps: Sequence[Step], item: int) -> float:
    """Count the sectors that a tile touches whose elements have `item` bytes."""
    runs, run = _runs(steps, item)
    return float(runs * max(1, math.ceil(run / SECTOR)))


def wasted(steps: Sequence[Step], item: int) -> float:
    """Bytes that come along with a wanted one, because its sector holds nothing else that the tile wants."""
    return max(0.0, SECTOR / _runs(steps, item)[1] - 1.0)


class Beside(NamedTuple):
    """Lanes that lie along one axis of a tile."""

    lanes: int
    apart: int
    """Elements of the axis between two of them."""
    groups: tuple[Step, ...]
    """Elements between neighbours in memory and extent of each of the axis's dimensions, the innermost first."""


@lru_cache(maxsize=8192)
def clocks(axes: tuple[Beside, ...], item: int, wide: int) -> float:
    """Clocks of the L1 for one access of a warp whose lanes each take `wide` neighbours: by the lines, banks and bytes they lie in.

    32 lanes 33 words apart, each in a line of its own, take 9 clocks; 8, 16 and 32 words apart 8, 16 and 32, for the number of banks that
    they share; 9 words apart 3 (an H100, 2026-11-26, from an L1 that has all of it).
    """
    places = [0]
    for axis in axes:
        own = [_place(number * axis.apart, axis.groups) for number in range(axis.lanes)]
        places = [one + other for one in places for other in own]
    words = {place * item // BANK for place in places}
    shared = max(Counter(word % BANKS for word in words).values()) if wide == 1 else 0
    lines = len({place * item // LINE for place in places})
    return max(1.0, lines / rates.L1_TAGS_PER_CLOCK, shared, len(words) * wide * item / LINE)


def _place(position: int, groups: tuple[Step, ...]) -> int:
    """Add up where a position lies; positions that are data lie anywhere, each in a line of its own."""
    total = 0
    for stride, size in groups:
        position, index = divmod(position, size)
        total += index * (ANYWHERE if stride is None else stride)
    return total


def _runs(steps: Sequence[Step], item: int) -> tuple[int, int]:
    """Count the runs of bytes in one piece, and the bytes of one.

    Axes are taken by stride, the shortest first: neighbours that touch or overlap lengthen a run, others begin another one.
    """
    run, runs = item, 1
    for stride, count in sorted(((stride, count) for stride, count in steps if stride), key=lambda step: step[0] or 0):
        if count > 1 and abs(stride or 0) * item <= max(run, SECTOR // 2):
            run += abs(stride or 0) * item * (count - 1)
        else:
            runs *= count
    return runs * math.prod(count for stride, count in steps if stride is None), run


def axis_steps(groups: Groups, extent: int, size: Callable[[tuple[int, ...]], int], stride: Callable[[int], int | None]) -> list[Step]:
    """Strides and extents of a tile along one axis, whose innermost group is filled first."""
    found: list[Step] = []
    left = extent
    for group in reversed(groups):
        found.append((stride(group[-1]), min(left, size(group))))
        left = max(1, math.ceil(left / size(group)))
    return found
