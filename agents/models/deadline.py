"""The wall time of a run: what is in flight when it is over is cancelled, and the last part of it is kept for the confirmation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agents.models.errors import BudgetReached
from tools.records import Budget, Spent

T = TypeVar("T")

CONFIRM_SHARE = 0.2
"""Of the wall time, which the search does not use: without a confirmation nothing could be delivered."""
CONFIRM_LEAST_S = 25.0
"""What of a short run is kept for that, up to half of it: a sealed confirmation took 9 to 19 GPU seconds and a build of 2 s on an H200."""
CONFIRM_FACTOR = 3.0
"""The same, as a multiple of the run's longest evaluation: on an H200 a confirmation took 2 to 4 times as long as that in the search."""
WALL = "wall_s"


def time_left(budget: Budget, spent: Spent, *, confirming: bool = False, longest_s: float = 0.0) -> float | None:
    """Seconds that the search may still take, or with `confirming` the run; None where no limit is set.

    `longest_s`: what the longest evaluation of a right candidate took.
    """
    if not budget.wall_s:
        return None
    needed = max(CONFIRM_LEAST_S, CONFIRM_FACTOR * longest_s)
    kept = 0.0 if confirming else max(budget.wall_s * CONFIRM_SHARE, min(needed, budget.wall_s / 2))
    return max(0.0, budget.wall_s - kept - spent.wall_s)


async def in_time(work: Callable[[], Awaitable[T]], left: float | None, what: str) -> T:
    """Begin `work` and await it for `left` seconds; then cancel it, wait until it has ended, and raise BudgetReached.

    Where nothing is left it is not begun. `what` begins the sentence that says so.
    """
    mend = "Give it more --minutes."
    if left is not None and left <= 0:
        raise BudgetReached(f"{what} was not begun: the wall time of --minutes is over.", mend)
    limit = asyncio.timeout(left)
    try:
        async with limit:
            return await work()
    except TimeoutError:
        if not limit.expired():
            raise
        raise BudgetReached(f"{what} was cut off: the wall time of --minutes is over.", mend) from None
