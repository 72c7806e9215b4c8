"""The run that `run_kills` kills: begun where there is none, else resumed. Usage: … run_kills_child HOME URL OPERATOR BUDGET."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from agents import team_settings
from graphs.optimize.execute import execute
from graphs.run.assembly import assemble, open_run, start_run
from graphs.run.settings import RunSettings
from tools.records import Budget
from tools.references.reading import read_problem


def main(home: Path, url: str, operator: Path, budget: int) -> None:
    """See the run through."""
    if (home / "runs" / "run" / "run.db").is_file():
        store = open_run(home, "run")
    else:
        team = team_settings("scripted", url, ["coder=builtin"])
        settings = RunSettings(team=team, target="h200", devices="interpreter", budget=Budget(evaluations=budget), embedder="hashing")
        store = start_run(read_problem(operator, settings.policy).problem, settings, home, "run")
    asyncio.run(execute(assemble(store), lambda event: None))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
