"""Runs on the small landscape whose planner is a language model on the scripted server; everybody else is built in or scripted in code."""

from __future__ import annotations

from pathlib import Path

from agents import AgentTeam, build_team, team_settings
from agents.coder.protocol import Coder
from agents.models.calls import CallRecord, recorded_calls
from agents.planner.protocol import Planner
from agents.profiler.builtin import BuiltinProfiler
from agents.reviewer.builtin import BuiltinReviewer
from graphs.optimize.execute import execute
from graphs.run.context import Services
from graphs.run.records import Considered
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from knowledge.protocol import Memory
from tests.support.interrupted import Interrupted, InterruptedStore
from tests.support.loop import BlockCoder, small_services
from tests.support.scripted_server import ScriptedServer
from tools.records import Budget
from tools.tracing import RunStore


def search_settings(search: str, evaluations: int = 8, **options: str) -> RunSettings:
    """Settings of a run without memory, one plan a round."""
    return RunSettings(
        target="h200",
        memory=False,
        search=search,
        budget=Budget(evaluations=evaluations),
        search_settings=SearchSettings(seed=2, batch=1, options=options),
    )


def asked_services(
    folder: Path,
    url: str,
    settings: RunSettings,
    store: RunStore | None = None,
    coder: Coder | None = None,
    memory: Memory | None = None,
) -> Services:
    """Open the run in `folder`, or make it."""
    if store is None:
        store = RunStore(folder) if (folder / "run.db").is_file() else RunStore.create(folder, {"run": folder.name, "created": "0"})
    made = build_team(team_settings("scripted", url, ["coder=builtin", "profiler=builtin", "reviewer=builtin"]), store)
    planner: Planner = made.planner
    team = AgentTeam(
        planner=planner, coder=coder or BlockCoder(), profiler=BuiltinProfiler(), reviewer=BuiltinReviewer(), models=made.models
    )
    return small_services(folder, settings, memory, team=team, store=store)


async def run_interrupted(
    folder: Path, server: ScriptedServer, settings: RunSettings, times: int, memory: Memory | None = None
) -> Services:
    """Run to the end, cut short on leaving `recall` in each of its first `times` executions."""
    RunStore.create(folder, {"run": folder.name, "created": "0"}).close()
    for _ in range(times):
        try:
            await execute(asked_services(folder, server.url, settings, InterruptedStore(folder), memory=memory), lambda event: None)
        except Interrupted:
            continue
    services = asked_services(folder, server.url, settings, memory=memory)
    await execute(services, lambda event: None)
    return services


def calls_for(services: Services, word: str) -> list[CallRecord]:
    """Finished model calls whose purpose begins with a word."""
    return [call for call in recorded_calls(services.store).values() if call.purpose.startswith(word)]


def considered(services: Services) -> str:
    """Everything that the trace says of the search method's wishes."""
    return "\n".join(said for one in services.store.all("considered", Considered).values() for said in one.said)
