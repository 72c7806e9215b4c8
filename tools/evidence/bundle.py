"""A bundle: one evaluation with everything it rests on, and where it came from."""

from __future__ import annotations

from typing import Literal

from tools.evidence.origin import Origin
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, PolicyName, Problem, Profile, Record, content_hash

__all__ = ["Bundle", "Origin", "make_bundle"]


class Bundle(Record):
    """What `kernelwright verify` re-checks."""

    problem: Problem
    """With its source, ABI and policy, at the sizes as written."""
    variants: tuple[Problem, ...]
    """The small sizes it was checked at."""
    kernel: str
    """The candidate's source."""
    evaluation: Evaluation
    """With every raw time, the seeds and the log."""
    stage: Literal["search", "confirm"]
    timeout_s: float
    """Wall-clock limit of each phase."""
    hardware: HardwareSheet
    """The device that was timed, or that the time was estimated for."""
    baselines: Baselines | None
    """The reference timed or estimated by itself, in a session of its own; None where nobody did."""
    other_baselines: dict[PolicyName, Baselines]
    """The same under the flags of other policies, where that was asked for."""
    profile: Profile | None
    """Where the candidate's time goes; None where it was not profiled."""
    origin: Origin

    @property
    def request(self) -> EvaluationRequest:
        """The job that the evaluation answered."""
        return EvaluationRequest(
            problem=self.problem,
            variants=self.variants,
            candidate=self.evaluation.candidate,
            source=self.kernel,
            target=self.hardware,
            stage=self.stage,
            timeout_s=self.timeout_s,
        )


def make_bundle(
    request: EvaluationRequest,
    evaluation: Evaluation,
    origin: Origin,
    baselines: Baselines | None = None,
    profile: Profile | None = None,
    other_baselines: dict[PolicyName, Baselines] | None = None,
) -> Bundle:
    """Put an evaluation together with the job it answered; its candidate is named by the contents that were judged.

    An evaluation whose defences were switched off proves nothing and raises UserError.
    """
    evaluation.demand_whole()
    name = candidate_id(request.problem, request.source)
    return Bundle(
        problem=request.problem,
        variants=request.variants,
        kernel=request.source,
        evaluation=evaluation.model_copy(update={"candidate": name}),
        stage=request.stage,
        timeout_s=request.timeout_s,
        hardware=request.target,
        baselines=baselines,
        other_baselines=other_baselines or {},
        profile=profile and profile.model_copy(update={"candidate": name}),
        origin=origin,
    )


def candidate_id(problem: Problem, source: str) -> str:
    """Name a source that claims to solve `problem`, as `Candidate.id` does."""
    return content_hash(problem.id, source)
