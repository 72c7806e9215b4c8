"""One job for a pool of evaluators."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.records.base import Record, content_hash
from tools.records.hardware import HardwareSheet
from tools.records.problem import Problem


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
    depth: Literal["whole", "check", "build"] = "whole"
    """How far it is taken: `build` compiles it and reads its machine code, `check` also judges it at the small sizes; neither is timed."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Limit of each phase (build, check, time): by the clock on a GPU, without one of the candidate's own time at each size."""

    @property
    def key(self) -> str:
        """The same job has the same key: a finished evaluation is never repeated."""
        variants = ",".join(v.id for v in self.variants)
        stage = self.stage if self.depth == "whole" else self.depth
        return content_hash(self.problem.id, variants, self.source, self.target.name, stage)
