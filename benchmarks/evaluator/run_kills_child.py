"""Runs that `run_kills` kills: each line of the input, a home, a model's URL, an operator, a budget, begins or resumes one in a fork."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

# imported here so that no run has to
import chromadb  # noqa: F401
import langchain_openai  # noqa: F401

from agents import team_settings
from graphs.optimize.execute import execute
from graphs.run.assembly import assemble, open_run, start_run
from graphs.run.settings import RunSettings
from tests.support.forking import print_into, serve
from tools.records import Budget
from tools.references.reading import read_problem


def _run(folder: str, url: str, operator: str, budget: str) -> None:
    """See the run through."""
    home = Path(folder)
    print_into(f"{folder}.out")
    home.with_suffix(".pid").write_text(str(os.getpid()))
    if (home / "runs" / "run" / "run.db").is_file():
        store = open_run(home, "run")
    else:
        team = team_settings("scripted", url, ["coder=builtin"])
        settings = RunSettings(team=team, target="h200", devices="interpreter", budget=Budget(evaluations=int(budget)), embedder="hashing")
        store = start_run(read_problem(Path(operator), settings.policy).problem, settings, home, "run")
    asyncio.run(execute(assemble(store), lambda event: None))


if __name__ == "__main__":
    serve(_run)
