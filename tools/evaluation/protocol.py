"""The pool protocol: whoever can judge a candidate, here or elsewhere."""

from __future__ import annotations

from typing import Literal, Protocol

from pydantic import Field

from tools.profiling.ncu import Counters
from tools.records import Admission, Estimate, Evaluation, HardwareSheet, Problem, Record, Sample, Tier, content_hash


class EvaluationRequest(Record):
    """One job for a pool: everything an evaluation needs, nothing of the agents."""

    problem: Problem
    """At the sizes as written."""
    variants: tuple[Problem, ...] = ()
    """The same reference at small and odd sizes: correctness is checked on these too (and only on these where the interpreter decides)."""
    candidate: str
    """Candidate id."""
    source: str
    """Python text that defines `ModelNew`."""
    target: HardwareSheet
    stage: Literal["search", "confirm"] = "search"
    """`confirm`: more calls, new seeds, new processes, more timed repetitions."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Wall-clock limit of each phase (build, check, time)."""

    @property
    def key(self) -> str:
        """The same job has the same key: a finished evaluation is never repeated."""
        variants = ",".join(v.id for v in self.variants)
        return content_hash(self.problem.id, variants, self.source, self.target.name, self.stage)


class Baselines(Record):
    """How fast the reference is by itself: measured on a GPU, or estimated for a target."""

    tier: Tier
    samples: dict[str, Sample] = Field(default_factory=dict)
    """`eager` and `compile`; empty where nothing was timed."""
    estimate: Estimate | None = None
    """With `candidate_us` equal to `eager_us`; None where the times were measured."""
    device: str
    """Name of the device that was timed, or of the target."""
    notes: tuple[str, ...] = ()
    """What fell back or failed, e.g. why torch.compile could not be timed."""
    admission: Admission = Admission()
    """Whether the problem can tell right from wrong: what trivial kernels pass on it, and which inputs do not matter."""

    @property
    def best_us(self) -> float:
        """Time of the fastest baseline, microseconds, of this record's tier."""
        if self.samples:
            return min(s.median_us for s in self.samples.values())
        assert self.estimate is not None
        return self.estimate.eager_us


class EvaluatorPool(Protocol):
    """Judges candidates in sandboxes; several `evaluate` calls may be in flight."""

    @property
    def name(self) -> str:
        """How the pool is shown to people, e.g. `local (1 GPU)`, `local (interpreter)`; it may change as workers come and go."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; a bad candidate is a verdict, a failing machine raises MachineError."""

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference (eager, torch.compile), or estimate it where there is no GPU."""

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Read the hardware counters of one call of a candidate that has passed; whatever is missing is in the note."""

    async def close(self) -> None:
        """End every process the pool started."""
