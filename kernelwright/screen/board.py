"""What a run is doing, kept from its events: the rounds' candidates, the best so far, what is left of the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agents.coder.protocol import Refusal
from agents.records.tune import is_tuning
from agents.reviewer.protocol import Review
from graphs.run.context import Services
from graphs.run.records import Recall
from kernelwright.screen.words import VERDICTS, action_in_words, candidate_in_words, counted, shortened, why_in_words
from tools.records import ROOT, Candidate, Evaluation, Plan, Spent, Tier, Verdict

WRITING, JUDGING, TUNING, UNWRITTEN = "writing", "judging", "tuning", "not written"


@dataclass
class Row:
    """One candidate of a round, from its plan to its review."""

    round: int
    plan: str
    """Plan id."""
    what: str
    """What it does, in words."""
    verdict: str = WRITING
    """In words: what is being done, then how it ended."""
    good: bool | None = None
    """Whether it is right; None where that is not known."""
    time_us: float | None = None
    tier: Tier | None = None
    """Of the time, and of the gain."""
    gain: float | None = None
    """Time of the fastest baseline over its own."""
    why: str = ""
    """Why it is not right, in a clause."""
    trials: int = 0
    """That the tuner has had for it."""
    done: bool = False
    best: bool = False
    """Whether it was the best of all when it was reviewed."""


@dataclass
class Board:
    """Listens to a run's events; reads what they name in its store, and prints nothing."""

    services: Services
    now: Callable[[], float] = time.monotonic
    rows: list[Row] = field(default_factory=list)
    """Of the round at hand."""
    best: Row | None = None
    round: int = 0
    doing: str = "examining the reference"
    since: float = 0.0
    """When it began to do that, by `now`."""
    spent: Spent = field(default_factory=Spent)

    def __post_init__(self) -> None:
        """Take up what the run has done before."""
        store = self.services.store
        self.spent = store.spent()
        self.round = max((_round(name) for name in store.all("recall", Recall)), default=0)
        self._do(f"going on with round {self.round}" if self.round else self.doing)
        candidates = store.all("candidate", Candidate)
        for evaluation in store.all("evaluation", Evaluation).values():
            if evaluation.candidate in candidates and evaluation.verdict is Verdict.PASS:
                row = Row(0, "", "")
                _judge(row, candidates[evaluation.candidate], evaluation)
                self._compare(row)

    @property
    def over(self) -> bool:
        """Whether every candidate of the round was reviewed."""
        return bool(self.rows) and all(row.done for row in self.rows)

    def __call__(self, event: dict[str, Any]) -> None:
        """Take one event in."""
        handler = getattr(self, f"_on_{event['event']}", None)
        if handler is not None:
            handler(event)
        self.spent = self.services.store.spent()

    def left(self) -> Iterator[str]:
        """Say of every limit how much of it is left."""
        budget, spent = self.services.settings.budget, self.spent
        if budget.evaluations:
            yield f"{max(0, budget.evaluations - spent.evaluations)} of {counted(budget.evaluations, 'evaluation')}"
        if budget.wall_s:
            yield f"{max(0.0, budget.wall_s - spent.wall_s) / 60:.1f} of {budget.wall_s / 60:g} min"
        if budget.money_usd:
            yield f"{max(0.0, budget.money_usd - spent.money_usd):.2f} of {budget.money_usd:g} USD"
        if budget.tokens:
            yield f"{max(0, budget.tokens - spent.tokens):,} of {budget.tokens:,} tokens"
        if budget.gpu_s:
            yield f"{max(0.0, budget.gpu_s - spent.gpu_s):.0f} of {budget.gpu_s:g} GPU s"

    def share(self) -> float | None:
        """Which share of the budget is spent, 0 to 1: of the limit that is nearest; None where there is none."""
        budget, spent = self.services.settings.budget.model_dump(), self.spent.model_dump()
        shares = [spent[name] / limit for name, limit in budget.items() if limit]
        return min(1.0, max(shares)) if shares else None

    def _do(self, what: str) -> None:
        self.doing, self.since = what, self.now()

    def _row(self, plan: str) -> Row:
        """Find the row of a plan, or begin it: of a run that goes on nobody heard of the plans of its last round."""
        row = next((row for row in self.rows if row.plan == plan), None)
        if row is None:
            found = self.services.store.get("plan", plan, Plan)
            assert found is not None
            what = action_in_words(found.action, self.services.store.candidate(found.parent))
            row = Row(self.round, plan, what, TUNING if is_tuning(found.action) else WRITING)
            self.rows.append(row)
        return row

    def _on_measured(self, event: dict[str, Any]) -> None:
        self._do("reading the operator, looking into memory")

    def _on_recalled(self, event: dict[str, Any]) -> None:
        number = _round(event["recall"])
        if number != self.round:
            self.round, self.rows = number, []
        self._do("planning")

    def _on_paused(self, event: dict[str, Any]) -> None:
        self._do("paused")

    def _on_planned(self, event: dict[str, Any]) -> None:
        self._row(event["plan"])
        self._do("writing and judging")

    def _on_refused(self, event: dict[str, Any]) -> None:
        row = self._row(event["plan"])
        row.verdict, row.why = UNWRITTEN, shortened(event["reason"])

    def _on_written(self, event: dict[str, Any]) -> None:
        row = self._row(event["plan"])
        row.what, row.verdict, row.why = candidate_in_words(self.services.candidate(event["candidate"])), JUDGING, ""

    def _on_evaluated(self, event: dict[str, Any]) -> None:
        evaluation = self.services.store.get("evaluation", event["key"], Evaluation)
        candidate = self.services.candidate(event["candidate"])
        assert evaluation is not None
        row = self._row(event["plan"])
        if row.verdict.startswith(TUNING):
            row.trials += 1
            row.verdict = f"{TUNING}, {row.trials} tried"
            if evaluation.speedup and evaluation.speedup > (row.gain or 0.0):
                row.time_us, row.tier, row.gain = evaluation.time_us, evaluation.tier, evaluation.speedup
        else:
            _judge(row, candidate, evaluation)

    def _on_reviewed(self, event: dict[str, Any]) -> None:
        row = self._row(event["plan"])
        evaluation = self.services.evaluation(event["candidate"]) if event["candidate"] else None
        if evaluation is not None:
            _judge(row, self.services.candidate(evaluation.candidate), evaluation)
        else:
            refusal = self.services.store.get("refusal", event["plan"], Refusal)
            row.verdict = VERDICTS[Verdict.INFRASTRUCTURE] if event["candidate"] else UNWRITTEN
            row.why = shortened(refusal.reason) if refusal else row.why
        if row.trials:
            row.what = f"{row.what}, best of {counted(row.trials, 'trial')}"
        self._close(row, self.services.store.get("review", event["plan"], Review))
        if self.over:
            self._do("learning")

    def _close(self, row: Row, review: Review | None) -> None:
        """Say of a right candidate whether it is an advance."""
        row.done = True
        self._compare(row)
        if row.best:
            row.verdict = f"{row.verdict}, best so far"
        elif row.good and review and not review.accepted:
            row.verdict = f"{row.verdict}, no faster"

    def _on_confirming(self, event: dict[str, Any]) -> None:
        self._do("confirming the best again, with new inputs in a new process")

    def _on_delivered(self, event: dict[str, Any]) -> None:
        self._do("the reference stays" if event["candidate"] == ROOT else "delivered")

    def _compare(self, row: Row) -> None:
        """Keep the better one; a measured time is never compared with an estimate, and goes before it."""
        if row.gain is None or row.gain <= 1.0:
            return
        if self.best is None or _rank(row) > _rank(self.best):
            self.best, row.best = row, True


def _judge(row: Row, candidate: Candidate, evaluation: Evaluation) -> None:
    row.what = candidate_in_words(candidate, evaluation)
    row.verdict, row.why = VERDICTS[evaluation.verdict], why_in_words(evaluation)
    row.good = None if evaluation.verdict in (Verdict.BUILT, Verdict.INFRASTRUCTURE) else evaluation.verdict is Verdict.PASS
    row.time_us, row.tier, row.gain = evaluation.time_us, evaluation.tier, evaluation.speedup


def _round(recall: str) -> int:
    """Read the round in the name of a recall."""
    return int(recall.partition("/")[0])


def _rank(row: Row) -> tuple[bool, float]:
    return row.tier is not Tier.ESTIMATED, row.gain or 0.0
