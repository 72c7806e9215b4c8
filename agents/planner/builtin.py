"""The built-in planner: the best-scored actions, deterministic, each with its reasons in words."""

from __future__ import annotations

from agents.planner.invent import invented_actions
from agents.planner.protocol import Briefing
from agents.planner.room import LESS, no_room
from agents.planner.scoring import Scored, score_action
from tools.actions import headline
from tools.records import Plan

WORTH_TRYING = 0.75
"""Below this score nothing is planned. Every kind that a bottleneck leaves any use starts above it, so it takes failures to fall below."""
AT_FLOOR = 0.95
"""From this share of the roofline floor on, up to `LESS`, what is left to gain cannot be told from noise."""
SAME_AGAIN = 2.5
"""Taken off for each plan of one batch that already changes the same kind of thing in the same region: a batch should differ."""


class BuiltinPlanner:
    """Chooses by the profile's bottleneck, the hardware sheet, recalled strategies, and what was tried on the parent."""

    name = "builtin"

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Return at most `count` plans with distinct actions not yet tried; none where nothing is left that is worth trying."""
        left = rank(briefing)
        chosen: list[Scored] = []
        while left and len(chosen) < count:
            best = max(range(len(left)), key=lambda i: (left[i].score - _repeats(left[i], chosen), -i))
            chosen.append(left.pop(best))
        return tuple(plan_of(one, briefing) for one in chosen)


def rank(briefing: Briefing, least: float | None = WORTH_TRYING) -> list[Scored]:
    """Score every allowed action not yet tried, from a score of `least` on; best first, the coder's own order among equals."""
    share = briefing.profile.figure("floor_share") or 0.0
    if AT_FLOOR <= share <= LESS or no_room(briefing.profile, briefing.sheet, briefing.against):
        return []
    done = {one.action.id for one in briefing.tried}
    listed = {action.id: action for action in briefing.options if briefing.allows(action)}
    others = {a.id: a for a in invented_actions(briefing) if a.id not in listed and briefing.allows(a)} if briefing.free else {}
    scored = [score_action(a, briefing) for key, a in listed.items() if key not in done]
    scored += [score_action(a, briefing, proven=False) for key, a in others.items() if key not in done]
    return sorted((one for one in scored if least is None or one.score >= least), key=lambda one: -one.score)


def _repeats(one: Scored, chosen: list[Scored]) -> float:
    alike = sum((c.action.kind, c.action.region) == (one.action.kind, one.action.region) for c in chosen)
    return SAME_AGAIN * alike


def plan_of(one: Scored, briefing: Briefing) -> Plan:
    """Make the plan of a scored action, with its reasons in words."""
    return Plan(
        parent=briefing.parent,
        action=one.action,
        rationale=_rationale(one, briefing),
        strategies=one.strategies,
        predicted_gain=one.predicted_gain,
        planner=BuiltinPlanner.name,
    )


def _rationale(one: Scored, briefing: Briefing) -> str:
    """E.g. `It moves 3.0 times the compulsory bytes (excess-traffic): Fuse operators in r0+r1 (10 points by rule); strategy …`.

    The parameters stand in the action, which is shown beside it.
    """
    profile = briefing.profile
    evidence = profile.evidence.strip().rstrip(".")
    clauses = [f"{headline(one.action)} ({one.prior:g} points by rule)", *one.reasons[:3]]
    if not one.proven:
        clauses.append("no coder has listed it as possible")
    unread = " The built-in planner reads no hints." if briefing.standing.hints else ""
    return f"{evidence} ({profile.bottleneck}): {'; '.join(clauses)}.{unread}"
