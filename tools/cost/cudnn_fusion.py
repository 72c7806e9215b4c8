"""What the cost model makes of cuDNN's fused epilogues: a choice's convolutions that are left to it, with the relu after each."""

from __future__ import annotations

from collections.abc import Callable

from tools.codegen import OperatorGraph, Region, Schedule
from tools.codegen.schedule.cudnn_fusion import epilogues, with_epilogue

SAVED = {1: 1.0, 2: 0.5}
"""Share of the pass after a convolution that its epilogue saves, by the operators in it: relu, or an addition and a relu.

Of twelve layers on an H200 in the reference's layout a relu saved 0.9 to 2.0 times what the pass takes by its bytes, one with an addition
-2.0 to 1.7 times, 0.6 in the median (docs/results/generated-kernels.md).
"""


def with_epilogues(graph: OperatorGraph, schedule: Schedule, pass_us: Callable[[Region], float]) -> tuple[Schedule, float] | None:
    """Return the schedule with every such pair in one call, and the time that saves, microseconds; none where there is no pair."""
    saved = 0.0
    changed = schedule
    while pair := next(epilogues(graph, changed), None):
        saved += SAVED[len(pair[1].nodes)] * pass_us(pair[1])
        joined = with_epilogue(graph, changed, list(pair))
        assert joined is not None
        changed = joined
    return (changed, saved) if changed != schedule else None
