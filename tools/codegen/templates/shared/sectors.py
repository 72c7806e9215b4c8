"""Sectors of an access: the pieces of 32 bytes that a tile of a tensor touches, whether all of their bytes are wanted or not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tools.codegen.templates.shared.work import SECTOR

Step = tuple[int | None, int]
"""One axis of a tile: elements between neighbours in memory (0: the same, None: anywhere), and how many there are."""


def sectors(steps: Sequence[Step], item: int) -> float:
    """Count the sectors that a tile touches whose elements have `item` bytes.

    Axes are taken by stride, the shortest first: neighbours that touch or overlap lengthen a run, others begin another one.
    """
    run, runs = item, 1
    for stride, count in sorted(((stride, count) for stride, count in steps if stride), key=lambda step: step[0] or 0):
        if count > 1 and abs(stride or 0) * item <= max(run, SECTOR // 2):
            run += abs(stride or 0) * item * (count - 1)
        else:
            runs *= count
    anywhere = math.prod(count for stride, count in steps if stride is None)
    return float(runs * anywhere * max(1, math.ceil(run / SECTOR)))
