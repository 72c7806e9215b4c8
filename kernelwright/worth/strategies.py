"""What came of single strategies in runs that recalled them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from agents.reviewer.protocol import Review
from graphs.run.records import Recall
from kernelwright.bench.row import ResultRow
from kernelwright.worth.records import StrategyWorth
from tools.records import Plan, Tier, Verdict
from tools.tracing import RunStore


class _Seen:
    """What runs say of one strategy while they are read."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.recalled = self.cited = 0
        self.gains: list[tuple[float, bool]] = []
        self.others: list[tuple[float, bool]] = []
        self.problems: dict[str, None] = {}


def strategies_worth(runs: Path, rows: Sequence[ResultRow]) -> tuple[StrategyWorth, ...]:
    """Read the folders of the rows' runs below `runs`; most cited first."""
    seen: dict[str, _Seen] = {}
    for row in rows:
        if (runs / row.run / "run.db").is_file():
            store = RunStore(runs / row.run)
            try:
                _read_run(store, row.problem, seen)
            finally:
                store.close()
    found = [_worth(name, one) for name, one in seen.items()]
    return tuple(sorted(found, key=lambda one: (-one.cited, -one.recalled, one.id)))


def _read_run(store: RunStore, problem: str, seen: dict[str, _Seen]) -> None:
    recalls = {name: (name.partition("/")[2], store.written("recall", name), found) for name, found in store.all("recall", Recall).items()}
    plans = store.all("plan", Plan)
    for parent, begun, recall in recalls.values():
        ended = min((at for other, at, _ in recalls.values() if other == parent and at > begun), default=None)
        mine = [
            p for p in plans.values() if p.parent == parent and begun <= (at := store.written("plan", p.id)) and (not ended or at < ended)
        ]
        for one in recall.recalled:
            entry = seen.setdefault(one.strategy.id, _Seen(one.strategy.title))
            entry.recalled += 1
            for plan in mine:
                cites = one.strategy.id in plan.strategies
                entry.cited += cites
                if cites:
                    entry.problems[problem] = None
                review = store.get("review", plan.id, Review)
                if review is not None and review.verdict is Verdict.PASS and review.gain is not None:
                    (entry.gains if cites else entry.others).append((review.gain.value, review.gain.tier == Tier.ESTIMATED))


def _worth(name: str, one: _Seen) -> StrategyWorth:
    gains, basis = _of_one_basis(one.gains)
    others, _ = _of_one_basis(one.others)
    return StrategyWorth(
        id=name,
        title=one.title,
        recalled=one.recalled,
        cited=one.cited,
        passed=len(one.gains),
        median_gain=statistics.median(gains) if gains else None,
        basis=basis,
        uncited_gain=statistics.median(others) if others else None,
        problems=tuple(one.problems),
    )


def _of_one_basis(gains: list[tuple[float, bool]]) -> tuple[list[float], str]:
    """Measured gains, or estimated ones where nothing was measured."""
    measured = [gain for gain, estimated in gains if not estimated]
    return (measured, "measured") if measured else ([gain for gain, _ in gains], "estimated" if gains else "none")
