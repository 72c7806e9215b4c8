"""Runs that `call_kills` kills: each line of the input, a folder and a model's URL, begins or resumes one in a process forked for it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

# imported here so that no run has to
import langchain_openai  # noqa: F401

from agents import build_team, team_settings
from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.forking import print_into, serve
from tests.support.loop import small_services
from tools.records import Budget
from tools.tracing import RunStore

EVERY = ["coder=llm", "profiler=llm", "reviewer=llm"]


def _run(folder: str, url: str) -> None:
    """See the run through."""
    place = Path(folder)
    print_into(f"{folder}.out")
    place.with_suffix(".pid").write_text(str(os.getpid()))
    store = RunStore(place) if (place / "run.db").is_file() else RunStore.create(place, {"run": place.name, "created": "0"})
    team = build_team(team_settings("scripted", url, EVERY, team="full"), store)
    settings = RunSettings(target="h200", memory=False, budget=Budget(evaluations=20), search_settings=SearchSettings(batch=4, width=4))
    asyncio.run(execute(small_services(place, settings, store=store, team=team), lambda event: None))


if __name__ == "__main__":
    serve(_run)
