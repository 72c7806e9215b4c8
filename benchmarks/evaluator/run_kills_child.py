"""Runs that `run_kills` kills: each line of the input begins or resumes one in a fork.

A line has a home, a model's URL, an operator, a budget, the words for roles, and how many plans a round has. The operator `landscape`
stands for a run of the small landscape of `tests/support/loop.py`: graph, store, checkpoints and model calls are real, verdicts are not.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

# imported here so that no run has to
import chromadb  # noqa: F401
import langchain_openai  # noqa: F401

from agents import build_team, team_settings
from graphs.optimize.execute import execute
from graphs.run.assembly import assemble, open_run, start_run
from graphs.run.context import Services
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.forking import print_into, serve
from tests.support.loop import small_services
from tools.records import Budget
from tools.references.reading import read_problem
from tools.tracing import RunStore

LANDSCAPE = "landscape"


def _run(folder: str, url: str, operator: str, budget: str, roles: str, batch: str) -> None:
    """See the run through."""
    home = Path(folder)
    print_into(f"{folder}.out")
    home.with_suffix(".pid").write_text(str(os.getpid()))
    settings = RunSettings(
        team=team_settings("scripted", url, json.loads(roles)),
        target="h200",
        devices="interpreter",
        budget=Budget(evaluations=int(budget)),
        search_settings=SearchSettings(batch=int(batch)),
        embedder="hashing",
        memory=operator != LANDSCAPE,
    )
    services = _landscape(home, settings) if operator == LANDSCAPE else assemble(_store(home, settings, operator))
    asyncio.run(execute(services, lambda event: None))


def _store(home: Path, settings: RunSettings, operator: str) -> RunStore:
    if (home / "runs" / "run" / "run.db").is_file():
        return open_run(home, "run")
    return start_run(read_problem(Path(operator), settings.policy).problem, settings, home, "run")


def _landscape(home: Path, settings: RunSettings) -> Services:
    folder = home / "runs" / "run"
    store = RunStore(folder) if (folder / "run.db").is_file() else RunStore.create(folder, {"run": "run", "created": "0"})
    return small_services(folder, settings, store=store, team=build_team(settings.team, store))


if __name__ == "__main__":
    serve(_run)
