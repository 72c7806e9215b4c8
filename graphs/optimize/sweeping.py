"""The numbers of a written kernel are for the tuner: a champion without a schedule is swept before anybody is asked for more."""

from __future__ import annotations

from agents.coder.tuning import tuning_action
from graphs.optimize.briefing import structures_tuned
from graphs.run.context import Services
from graphs.run.steering import is_vetoed
from graphs.search.protocol import Ask
from tools.records import ROOT, Action, Candidate, Plan

SWEEP = "sweep"
"""Tag of the ask for it; no search method sees it."""
SWEEPER = "tuner"
"""Who planned it."""
LATEST = 2
"""A limited budget must have come down to this many times the trials: what is written before that may be faster yet."""


def sweeping_ask(services: Services, champion: str) -> Ask | None:
    """Ask for the sweep of a run's fastest candidate where it is text, its structure was not swept, and it is time."""
    if is_vetoed(services.store, champion):
        return None
    parent = services.store.candidate(champion) if champion != ROOT else None
    left, trials = services.evaluations_left(), services.settings.tune
    if parent is None or parent.schedule is not None or (left is not None and not 2 <= left <= LATEST * trials):
        return None
    action = _action(services, parent, structures_tuned(services))
    return Ask(parent=champion, tag=SWEEP) if action is not None else None


def sweeping_plan(services: Services, parent: str) -> Plan:
    """The plan whose outcome is the fastest of the parent's own numbers and others."""
    action = _action(services, services.candidate(parent), set())
    assert action is not None
    return Plan(parent=parent, action=action, rationale="Numbers of a written kernel are found by compiling and timing.", planner=SWEEPER)


def _action(services: Services, parent: Candidate, tuned: set[str]) -> Action | None:
    return tuning_action(parent, services.settings.tune, tuned, services.problem)
