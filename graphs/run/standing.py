"""What planner and coder are told of the run so far: kept as each plan ends, so that a resumed run tells the same."""

from __future__ import annotations

from agents.coder.protocol import Refusal
from agents.records.standing import Attempt, Standing
from agents.reviewer.protocol import Review
from graphs.run.context import Services
from graphs.run.steering import hints
from tools.records import ROOT, Baselines, Plan, Profile

ATTEMPT = "attempt"
"""Kind of record by which a store keeps what came of a plan, by the plan's id."""


def keep_attempt(services: Services, plan: Plan, candidate_id: str) -> None:
    """Write down what came of a plan; nothing where it was neither reviewed nor refused."""
    store = services.store
    review = store.get("review", plan.id, Review) if candidate_id else None
    refusal = store.get("refusal", plan.id, Refusal)
    evaluation = services.evaluation(candidate_id) if review else None
    if review is not None and evaluation is not None:
        made = Attempt(
            candidate=candidate_id,
            parent=plan.parent,
            action=plan.action,
            idea=services.candidate(candidate_id).idea,
            verdict=review.verdict,
            time_us=evaluation.time_us,
            tier=evaluation.tier.value if evaluation.tier else "",
            speedup=evaluation.speedup,
            errors=evaluation.correctness.outputs if evaluation.correctness else (),
            why=review.reason,
            concerns=review.concerns,
        )
    elif refusal is not None:
        made = Attempt(candidate="", parent=plan.parent, action=plan.action, verdict=None, why=refusal.reason)
    else:
        return
    store.put(ATTEMPT, plan.id, made, subject=plan.parent)


def standing_of(services: Services) -> Standing:
    """Put together where the run stands; without times before the reference has any."""
    baselines = services.store.get("baselines", services.problem.id, Baselines)
    profile = services.store.get("profile", ROOT, Profile)
    return Standing(
        baselines=_times(baselines) if baselines else {},
        tier=baselines.tier.value if baselines else "",
        floor_us=profile.figure("floor_us") if profile else None,
        attempts=tuple(services.store.all(ATTEMPT, Attempt).values()),
        hints=hints(services.store),
    )


def _times(baselines: Baselines) -> dict[str, float]:
    if baselines.samples or baselines.estimate is None:
        return {name: sample.median_us for name, sample in baselines.samples.items()}
    return {"eager": baselines.estimate.eager_us}
