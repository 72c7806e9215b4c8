"""Other candidates that planner and coder are shown beside the parent, as a search method asks for."""

from __future__ import annotations

from agents.records.inspiration import Inspiration
from graphs.run.context import Services
from graphs.run.steering import is_vetoed
from graphs.search.protocol import Ask
from tools.records import ROOT, Action, Profile


def inspirations(services: Services, ask: Ask) -> tuple[Inspiration, ...]:
    """The other candidates that an ask wants to be seen: second parents, then leading programs, then those of other strategies."""
    names = dict.fromkeys([*ask.mates, *ask.inspirations, *ask.diverse])
    return tuple(_inspiration(services, name, ask) for name in names if name != ROOT and not is_vetoed(services.store, name))


def _inspiration(services: Services, name: str, ask: Ask) -> Inspiration:
    evaluation, profile = services.evaluation(name), services.store.get("profile", name, Profile)
    return Inspiration(
        candidate=name,
        speedup=(evaluation.speedup if evaluation else None) or 0.0,
        steps=_steps(services, name),
        mate=name in ask.mates,
        diverse=name in ask.diverse and name not in (*ask.mates, *ask.inspirations),
        time_us=evaluation.time_us if evaluation else None,
        tier=str(evaluation.tier or "") if evaluation else "",
        bottleneck=str(profile.bottleneck) if profile else "",
        source=services.store.source(name),
    )


def _steps(services: Services, name: str) -> tuple[Action, ...]:
    """Actions from the reference to a candidate."""
    steps: list[Action] = []
    while (candidate := services.store.candidate(name)) is not None and len(steps) < 64:
        steps.append(candidate.action)
        name = candidate.parent
    return tuple(reversed(steps))
