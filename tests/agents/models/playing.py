"""Whole runs of the graph, each driven by a scripted server over real HTTP, on the small landscape of tests/support/loop.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents import TeamSettings, build_team
from agents.coder.protocol import Refusal
from agents.models import CallRecord, ModelSettings, Trouble, budget_guard
from agents.models.calls import recorded_calls
from graphs.optimize.execute import execute
from graphs.run.records import Delivery
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.loop import small_services
from tests.support.scripted_server import ScriptedServer
from tools.records import Budget, Candidate, Plan
from tools.tracing import RunStore

EVERY = {"coder": "llm", "profiler": "llm", "reviewer": "llm"}
"""Variants of a team in which the model plays every role, the planner's with `full`."""
Listener = Callable[[dict[str, Any]], None]


class Played:
    """A run that has ended."""

    def __init__(self, delivery: Delivery, store: RunStore) -> None:
        """Look at `store`."""
        self.delivery = delivery
        self.store = store

    @property
    def block(self) -> str:
        """Block size of what was delivered; `root` where nothing was."""
        found = self.store.candidate(self.delivery.candidate)
        return str(found.action.parameters["BLOCK"]) if found else self.delivery.candidate

    @property
    def calls(self) -> list[CallRecord]:
        """Finished calls."""
        return list(recorded_calls(self.store).values())

    @property
    def said(self) -> str:
        """Everything that the run says about what went wrong: rationales, refusals, notes, troubles."""
        plans = [plan.rationale for plan in self.store.all("plan", Plan).values()]
        refusals = [one.reason for one in self.store.all("refusal", Refusal).values()]
        notes = [note for one in self.store.all("candidate", Candidate).values() for note in one.notes]
        troubles = [one.what for one in self.store.all("trouble", Trouble).values()]
        answers = [note for call in self.calls for note in call.notes]
        return "\n".join([*plans, *refusals, *notes, *troubles, *answers])


def model_settings(server: ScriptedServer, **fields: Any) -> ModelSettings:
    """Settings that ask quickly."""
    given = {"name": "scripted", "base_url": server.url, "timeout_s": 10, "retries": 1, "backoff_s": 0.01, **fields}
    return ModelSettings.model_validate(given)


def run_settings(team: TeamSettings, **fields: Any) -> RunSettings:
    """Settings of a short run, one plan at a time."""
    given: dict[str, Any] = {"budget": Budget(evaluations=8), "search_settings": SearchSettings(batch=1, patience=2), **fields}
    return RunSettings(target="h200", memory=False, repairs=1, team=team, **given)


async def play(folder: Path, team: TeamSettings, listener: Listener = lambda event: None, **fields: Any) -> Played:
    """See a whole run through."""
    settings = run_settings(team, **fields)
    services = small_services(folder, settings)
    services.team = build_team(team, services.store, guard=budget_guard(settings.budget, services.store.spent))
    return Played(await execute(services, listener), services.store)
