"""Rating every possible step of a parent: what search methods that draw, or that keep decisions open, choose among."""

from __future__ import annotations

from pydantic import Field

from agents.planner.builtin import BuiltinPlanner, plan_of, rank
from agents.planner.protocol import Briefing, Planner
from agents.planner.solo import SoloPlanner
from tools.records import Action, ActionKind, Plan, Record

ASKED = 6
"""Plans asked of a language model for one rating; what it names comes first, in its order."""
TOP_SCORE = 10.0
KNEE = 9.0
"""Where scores go beyond the scale, as those of the cost model's choices do, all above this share what is left of it, in their order."""
DIFFICULTY = {
    ActionKind.LAUNCH: 1,
    ActionKind.VECTORISATION: 1,
    ActionKind.PIPELINE: 1,
    ActionKind.TILING: 2,
    ActionKind.REORDERING: 2,
    ActionKind.LAYOUT: 3,
    ActionKind.PRECISION: 3,
    ActionKind.FUSION: 3,
    ActionKind.ALGORITHM: 4,
    ActionKind.REWRITE: 5,
}
"""How much of a kernel each kind rewrites, from 1 to 5: a judgement of ours, no measurement."""


class Rating(Record):
    """One possible step with what the planner thinks of it."""

    action: Action
    score: float
    """From 0 to 10."""
    predicted_gain: float | None = None
    difficulty: int = Field(ge=1, le=5)
    rationale: str
    strategies: tuple[str, ...] = ()
    planner: str


async def rate(planner: Planner, briefing: Briefing, *, ask: bool = True) -> tuple[Rating, ...]:
    """Rate every step not yet tried, best first; with `ask` off, or where the built-in planner plans, by its scores alone.

    A language model is asked for its plans by the planner's protocol: they come first, in its order; it gives no probabilities of its
    own, so the order is all that is used. The rest follows by the built-in scores, below them. A solo planner's designs cost no call.
    """
    joined = isinstance(planner, SoloPlanner)
    # whoever designs takes no steps that nobody listed
    ranked = rank(briefing.model_copy(update={"free": briefing.free and not joined}), least=None)
    known = [plan_of(one, briefing) for one in ranked]
    scores = _on_scale({one.action.id: one.score for one in ranked})
    if isinstance(planner, BuiltinPlanner) or not (ask or joined):
        return tuple(_rating(plan, scores[plan.action.id]) for plan in known)
    named = await (planner.listed if isinstance(planner, SoloPlanner) else planner.plan)(briefing, ASKED)
    first = {plan.action.id: _rating(plan, TOP_SCORE - 0.5 * place) for place, plan in enumerate(named)}
    ceiling = min((one.score for one in first.values()), default=TOP_SCORE)
    rest = [_rating(plan, min(scores[plan.action.id], ceiling)) for plan in known if plan.action.id not in first]
    return (*first.values(), *rest)


def _on_scale(scores: dict[str, float]) -> dict[str, float]:
    """Press scores together below `TOP_SCORE` where the best is beyond it: cut off they would be equal, and the order would be lost."""
    most = max(scores.values(), default=0.0)
    if most <= TOP_SCORE:
        return scores
    share = (TOP_SCORE - KNEE) / (most - KNEE)
    return {name: KNEE + (score - KNEE) * share if score > KNEE else score for name, score in scores.items()}


def _rating(plan: Plan, score: float) -> Rating:
    kind, regions = plan.action.kind, plan.action.region.count("+")
    return Rating(
        action=plan.action,
        score=round(min(TOP_SCORE, max(0.0, score)), 4),
        predicted_gain=plan.predicted_gain,
        difficulty=min(5, DIFFICULTY[kind] + (regions > 2)),
        rationale=plan.rationale,
        strategies=plan.strategies,
        planner=plan.planner,
    )
