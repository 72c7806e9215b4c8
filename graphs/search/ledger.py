"""The ledger: what every method remembers of the results it was told, as ids and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from graphs.search.protocol import Told
from tools.records import ROOT, Record, Verdict

NEUTRAL = (Verdict.INFRASTRUCTURE,)
"""Ends that say nothing about the candidate."""


class Ledger(Record):
    """Everything told so far; a portfolio's methods share one."""

    rounds: int = 0
    """Rounds that brought something new."""
    plans: tuple[str, ...] = ()
    """Plans told, in order: a result told again is known by them."""
    speedups: dict[str, float] = Field(default_factory=lambda: {ROOT: 1.0})
    """Every passing candidate's speed-up in the order told; the reference is 1.0."""
    parents: dict[str, str] = Field(default_factory=dict)
    """Of every passing candidate."""
    expanded: dict[str, int] = Field(default_factory=dict)
    """Plans told by parent."""
    failures: dict[str, int] = Field(default_factory=dict)
    """Plans that did not pass, by parent."""
    closed: tuple[str, ...] = ()
    """Parents for which the planner has no plan left, whatever the constraint."""
    best: float = 0.0
    """Best speed-up of a passing candidate; below 1 while all are slower than the reference."""
    stale: int = 0
    """Rounds with a plan since `best` last rose."""

    def fertile(self) -> list[str]:
        """Every right version that may still be a parent, in the order told, the reference first."""
        return [name for name in self.speedups if name not in self.closed]

    def ranked(self) -> list[str]:
        """Fertile candidates, the fastest first; the reference among them by its 1.0, behind its equals."""
        return sorted(self.fertile(), key=lambda name: (-self.speedups[name], name == ROOT, name))

    def gain(self, told: Told) -> float:
        """Speed-up of a result over that of its parent; 0 where it did not pass."""
        return told.speedup / self.speedups.get(told.parent, 1.0) if told.verdict is Verdict.PASS else 0.0


def fold(ledger: Ledger, results: Sequence[Told]) -> tuple[Ledger, tuple[Told, ...]]:
    """Return the ledger after `results`, and those of them that are new."""
    fresh = tuple(_new(ledger, results))
    if not fresh:
        return ledger, ()
    planned = [told for told in fresh if told.plan]
    passed = [told for told in planned if told.verdict is Verdict.PASS and told.candidate]
    best = max([ledger.best, *(told.speedup for told in passed)])
    speedups, parents = dict(ledger.speedups), dict(ledger.parents)
    for told in passed:
        # the same source from another parent is the same candidate: the first way to it counts
        parents.setdefault(told.candidate, told.parent)
        speedups.setdefault(told.candidate, round(told.speedup, 6))
    failed = [told.parent for told in planned if told.verdict is not Verdict.PASS and told.verdict not in NEUTRAL]
    barren = [told.parent for told in fresh if not told.plan and not told.constrained]
    return Ledger(
        rounds=ledger.rounds + 1,
        plans=(*ledger.plans, *(told.plan for told in planned)),
        speedups=speedups,
        parents=parents,
        expanded=_counted(ledger.expanded, [told.parent for told in planned]),
        failures=_counted(ledger.failures, failed),
        closed=tuple(dict.fromkeys([*ledger.closed, *barren])),
        best=round(best, 6),
        stale=0 if best > ledger.best else ledger.stale + bool(planned),
    ), fresh


def _new(ledger: Ledger, results: Sequence[Told]) -> list[Told]:
    known = set(ledger.plans)
    found = []
    for told in results:
        if told.plan in known or (not told.plan and not told.constrained and told.parent in ledger.closed):
            continue
        if told.plan:
            known.add(told.plan)
        found.append(told)
    return found


def _counted(counts: dict[str, int], names: Sequence[str]) -> dict[str, int]:
    result = dict(counts)
    for name in names:
        result[name] = result.get(name, 0) + 1
    return result
