"""What a run's page shows, kept up to date with what the run writes: figures of every candidate, and words of those that are listed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from kernelwright.screen.facts import candidate_line, head_facts, inner_trials
from kernelwright.screen.follow import is_worked_on
from kernelwright.ui.tree import leading
from tools.records import Candidate
from tools.tracing import RunStore
from tools.tracing.outlines import Judged

Facts = dict[str, Any]
LISTED = 100
"""Candidates that are listed in words; of a larger run the best, with all that lie above them."""


class Overview:
    """One run; `read` again reads what was written since."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._judged: dict[str, Judged] = {}
        self._last = 0.0
        self._lines: dict[str, tuple[Facts, Facts]] = {}

    def read(self, store: RunStore) -> Facts:
        """Give the facts of `tree_facts`, with points in the place of its candidates, and in `lines` those that are listed."""
        for one in store.outline.judged(self._last):
            self._judged[one.id] = one
            self._last = max(self._last, one.created)
        judged = sorted(self._judged.values(), key=lambda one: one.created)
        facts = head_facts(store, judged)
        points = self._points(store, judged)
        listed = leading(points, LISTED, facts["delivered"])
        return {
            **facts,
            "state": state_of(store, facts),
            "candidates": points,
            "lines": {one["id"]: self._line(store, one) for one in listed},
        }

    def _points(self, store: RunStore, judged: Sequence[Judged]) -> list[Facts]:
        """Every candidate with its outcome and what the run had spent by then, in the order they came."""
        outcomes: dict[str, list[Judged]] = {}
        for found in judged:
            outcomes.setdefault(found.candidate, []).append(found)
        spent, inside, reviewed = _Spending(store), inner_trials(store), store.outline.reviewed()
        points = []
        for number, one in enumerate((one for one in store.outline.candidates() if one.id not in inside), 1):
            ended = outcomes.get(one.id, [])
            first = ended[0] if ended else None
            points.append(
                {
                    "id": one.id,
                    "parent": one.parent,
                    "number": number,
                    "verdict": first.verdict if first else None,
                    "tier": first.tier if first else None,
                    "time_us": first.time_us if first else None,
                    "speedup": first.speedup if first else None,
                    "judged": len(ended),
                    "reviewed": one.id in reviewed,
                    **spent.by(first.created if first else one.created),
                }
            )
        return points

    def _line(self, store: RunStore, point: Facts) -> Facts:
        """Its words, read again where something was found out about it since."""
        known = self._lines.get(point["id"])
        if known and known[0] == point:
            return known[1]
        candidate = store.get("candidate", point["id"], Candidate)
        assert candidate is not None
        line = candidate_line(store, point["id"], candidate)
        self._lines[point["id"]] = (point, line)
        return line


class _Spending:
    """What a run had spent by a moment."""

    def __init__(self, store: RunStore) -> None:
        self._sessions = store.sessions()
        paid = store.outline.paid()
        self._when, self._usd = [when for when, _ in paid], list(accumulate((usd for _, usd in paid), initial=0.0))

    def by(self, moment: float) -> Facts:
        """Seconds at work, and money."""
        worked = sum(max(0.0, min(moment, end) - begun) for begun, end in self._sessions)
        return {"seconds": worked, "usd": self._usd[bisect_right(self._when, moment)]}


def state_of(store: RunStore, facts: Facts) -> str:
    """Say whether a run has ended, works, waits, or was stopped."""
    if facts["state"] == "ended":
        return "ended"
    if not is_worked_on(store):
        return "stopped"
    return "paused" if facts["steering"]["paused"] else "running"
