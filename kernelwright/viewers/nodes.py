"""The executions of a run's nodes by their times: which one something happened in, and which round that belongs to."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from math import inf

from tools.records import Candidate, content_hash
from tools.tracing import RunStore, Span

SLACK_S = 0.005
"""Between a record's moment and the end of the node that wrote it: each reads the clock for itself."""
OF_LOOP = "round "
"""How the subjects of the loop's own nodes begin; those of a refinement are about a plan. The loop's never overlap."""


class Nodes:
    """What is known of the nodes so far."""

    def __init__(self, store: RunStore) -> None:
        """Know nothing yet."""
        self._store = store
        self._about: dict[str, dict[int, Span]] = defaultdict(dict)
        self._loop: list[Span] = []
        self._plans: dict[str, str] = {}

    def look(self, since: float) -> list[Span]:
        """Read those that ended at `since` or later, or have not ended; return them."""
        found = self._store.spans(since if self._about else 0.0)
        for span in found:
            self._about[span.subject][span.id] = span.model_copy(update={"input": "", "output": None})
        loop = (one for subject, mine in self._about.items() if subject.startswith(OF_LOOP) for one in mine.values())
        self._loop = sorted(loop, key=_begin)
        return [span for span in found if span.ended is None or span.ended >= since]

    def round_of(self, span: Span) -> int:
        """The round a node belongs to; those of a plan to that whose node began last."""
        if span.subject.startswith(OF_LOOP):
            return int(span.subject.removeprefix(OF_LOOP))
        before = bisect_right(self._loop, span.started, key=_begin)
        return self.round_of(self._loop[before - 1]) if before else 0

    def around(self, moment: float, about: str) -> Span | None:
        """The node that was being executed at a moment: for a plan that `about` names, else the loop's own."""
        words = about.replace("/", " ").replace(",", " ").split()
        mine = (span for word in words if word in self._about for span in self._about[word].values())
        before = bisect_right(self._loop, moment, key=_begin)
        return _last_open(mine, moment) or _last_open(self._loop[max(before - 2, 0) : before], moment)

    def plan_of(self, candidate: str) -> str:
        """The plan that a candidate was written for; empty where there is none."""
        if candidate not in self._plans:
            found = self._store.get("candidate", candidate, Candidate)
            self._plans[candidate] = content_hash(found.parent, found.action.id) if found else ""
        return self._plans[candidate]

    def extent(self, number: int) -> tuple[float, float]:
        """When a round began and ended, so far."""
        mine = self._about[f"{OF_LOOP}{number}"].values()
        return min(map(_begin, mine)), max(one.ended or one.started for one in mine)

    def unlearnt(self) -> list[int]:
        """Rounds, without that of the measuring and the confirming, whose `learn` has not ended."""
        rounds = {self.round_of(one) for one in self._loop if one.node not in ("measure", "confirm")}
        learnt = {self.round_of(one) for one in self._loop if one.node == "learn" and one.ended is not None and one.error is None}
        return sorted(rounds - learnt)

    def cut_short(self) -> list[Span]:
        """Those that have not ended."""
        return [one for mine in self._about.values() for one in mine.values() if one.ended is None]

    def last(self) -> float:
        """When the last node ended, or began; 0 where there is none."""
        return max((one.ended or one.started for mine in self._about.values() for one in mine.values()), default=0.0)

    def first(self) -> float:
        """When the first node began; infinity where there is none."""
        return _begin(self._loop[0]) if self._loop else inf


def _begin(span: Span) -> float:
    return span.started


def _last_open(spans: Iterable[Span], moment: float) -> Span | None:
    """Of those that were being executed at a moment the one that began last."""
    open_ = (one for one in spans if one.started <= moment and (one.ended is None or moment <= one.ended + SLACK_S))
    return max(open_, key=_begin, default=None)
