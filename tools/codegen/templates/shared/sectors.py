"""Sectors of an access: the pieces of 32 bytes that a tile of a tensor touches, whether all of their bytes are wanted or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tools.codegen.templates.shared.work import LINE, SECTOR

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


def looked_up(steps: Sequence[Step], item: int, elements: float) -> float:
    """Count the lines that warps look up in the L1 to read so many elements: neighbours in memory share one, what lies apart does not."""
    return elements * item / min(LINE, _runs(steps, item)[1])


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
