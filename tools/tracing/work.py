"""Where wall time went: spans of work as they were measured, and one label for each moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from pydantic import Field

from tools.records import Record


class Work(Record):
    """One stretch of time in which something was done."""

    what: str
    """E.g. `tracing`, `evaluation`, `memory`."""
    started: float
    """Seconds since the epoch."""
    ended: float


class Share(Record):
    """What one kind of work took."""

    wall_s: float = Field(ge=0)
    """Moments that are put down to it: of works at one time the most telling counts, so that shares add up to the whole."""
    busy_s: float = Field(ge=0)
    """All of its stretches, also those beside other work."""


def shares(works: Sequence[Work], within: Iterable[tuple[float, float]], order: Sequence[str], rest: str) -> dict[str, Share]:
    """Put every moment of the stretches `within` down to the work under way that stands first in `order`; the others are `rest`."""
    place = {what: number for number, what in enumerate(order)}
    spent = dict.fromkeys([*order, rest], 0.0)
    for begin, end in within:
        clipped = [(max(begin, one.started), min(end, one.ended), one.what) for one in works if one.ended > begin and one.started < end]
        edges = sorted({begin, end, *(edge for one in clipped for edge in one[:2])})
        for left, right in pairwise(edges):
            under_way = [what for started, ended, what in clipped if started <= left and ended >= right and what in place]
            spent[min(under_way, key=lambda what: place[what]) if under_way else rest] += right - left
    busy = {what: sum(one.ended - one.started for one in works if one.what == what) for what in spent}
    return {what: Share(wall_s=wall, busy_s=max(busy[what], 0.0)) for what, wall in spent.items() if wall > 0 or busy[what] > 0}
