"""What the nodes work with: nothing here is in the state, so nothing here is in a checkpoint."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import InstanceOf
from pydantic.json_schema import SkipJsonSchema

from agents import AgentTeam
from agents.models.deadline import WALL, time_left
from graphs.run.settings import RunSettings
from knowledge.protocol import Memory
from tools.evaluation.protocol import EvaluatorPool
from tools.guards import contract_of, guarded, reference_text
from tools.inductor import Written
from tools.problems.mixed_sizes import MIXED
from tools.records import Baselines, Candidate, Evaluation, EvaluationRequest, HardwareSheet, Problem, Verdict
from tools.tracing import RunStore


@dataclass
class Services:
    """One run's problem, agents, memory, evaluator and store."""

    run: str
    settings: RunSettings
    problem: Problem
    variants: tuple[Problem, ...]
    """The problem at small and odd sizes."""
    sheet: HardwareSheet
    store: RunStore
    pool: EvaluatorPool
    team: AgentTeam
    memory: Memory
    judging: dict[str, asyncio.Lock] = field(default_factory=dict)
    """One lock a job: two plans that lead to the same source wait for one evaluation."""
    inductor: asyncio.Task[Written] | None = None
    """What Inductor writes for the problem, once that was begun."""

    def candidate(self, name: str) -> Candidate:
        """Read a candidate that must exist."""
        found = self.store.candidate(name)
        assert found is not None, name
        return found

    def baselines(self) -> Baselines:
        """Read the run's baselines, which the first node measured."""
        found = self.store.get("baselines", self.problem.id, Baselines)
        assert found is not None
        return found

    def guarded(self, candidate: Candidate) -> str:
        """Write the file that is confirmed and delivered: a candidate with its guard, without which the search judges it."""
        contract = contract_of(self.problem, self.variants, MIXED.of(self.problem) or ())
        reference = reference_text(self.problem) if self.settings.fallback == "reference" else ""
        return guarded(candidate.source, contract, reference=reference)

    def request(self, candidate: Candidate, confirm: bool = False) -> EvaluationRequest:
        """Make the job that judges `candidate`, or confirms it as it would be delivered."""
        return EvaluationRequest(
            problem=self.problem,
            variants=self.variants,
            candidate=candidate.id,
            source=self.guarded(candidate) if confirm else candidate.source,
            target=self.sheet,
            stage="confirm" if confirm else "search",
            timeout_s=self.settings.timeout_s,
        )

    def evaluation(self, candidate: str) -> Evaluation | None:
        """Read the search-stage evaluation of a candidate; None for the reference."""
        found = self.store.candidate(candidate)
        return self.store.get("evaluation", self.request(found).key, Evaluation) if found else None

    def exhausted(self) -> str | None:
        """Name the first budget that is used up, or None."""
        return self.settings.budget.exhausted(self.store.spent()) or (WALL if self.time_left() == 0 else None)

    def time_left(self, *, confirming: bool = False) -> float | None:
        """Seconds that the search may still take, or with `confirming` the run; None where no limit is set."""
        if not self.settings.budget.wall_s:
            return None
        found = () if confirming else self.store.all("evaluation", Evaluation).values()
        longest_s = max((one.seconds for one in found if one.verdict is Verdict.PASS), default=0.0)
        return time_left(self.settings.budget, self.store.spent(), confirming=confirming, longest_s=longest_s)

    def evaluations_left(self) -> int | None:
        """Evaluations the budget still allows; None where it sets no limit."""
        limit = self.settings.budget.evaluations
        return max(0, limit - self.store.spent().evaluations) if limit else None


@dataclass
class Context:
    """The graph's run-time context: the services of a run, or what it takes to open them (`langgraph dev` gives plain values)."""

    problem_file: str = ""
    """A problem to start a new run on, with default settings; not needed where the state names a run."""
    home: str = ""
    """Home folder; empty means the default one."""
    opened: Annotated[InstanceOf[Services] | None, SkipJsonSchema()] = None
    """Set within this process alone: whoever starts a run over a server is offered the two above."""

    @property
    def services(self) -> Services:
        """The run's services; `assembly.open_for` comes first."""
        assert self.opened is not None
        return self.opened
