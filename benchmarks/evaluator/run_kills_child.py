"""Runs that `run_kills` kills: each line of the input begins or resumes one in a fork.

A line has a home, a model's URL, an operator, a budget, the words for roles, and how many plans a round has.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

# imported here so that no run has to
import chromadb  # noqa: F401
import langchain_openai  # noqa: F401

from agents import team_settings
from graphs.optimize.execute import execute
from graphs.run.assembly import assemble, open_run, start_run
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.forking import print_into, serve
from tools.records import Budget
from tools.references.reading import read_problem


def _run(folder: str, url: str, operator: str, budget: str, roles: str, batch: str) -> None:
    """See the run through."""
    home = Path(folder)
    print_into(f"{folder}.out")
    home.with_suffix(".pid").write_text(str(os.getpid()))
    if (home / "runs" / "run" / "run.db").is_file():
        store = open_run(home, "run")
    else:
        settings = RunSettings(
            team=team_settings("scripted", url, json.loads(roles)),
            target="h200",
            devices="interpreter",
            budget=Budget(evaluations=int(budget)),
            search_settings=SearchSettings(batch=int(batch)),
            embedder="hashing",
        )
        store = start_run(read_problem(Path(operator), settings.policy).problem, settings, home, "run")
    asyncio.run(execute(assemble(store), lambda event: None))


if __name__ == "__main__":
    serve(_run)
