"""How much the loop itself costs: seconds a round and bytes of state and checkpoints, as the candidates grow to 200.

Agents and evaluator answer at once, so what is timed is LangGraph, the checkpointer and the run's store.
Usage: python -m benchmarks.search.loop_overhead [EVALUATIONS]
"""

from __future__ import annotations

import asyncio
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from agents.coder.protocol import CodingTask, Draft, Refusal
from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.loop import BlockCoder, small_services, small_team
from tools.records import Action, ActionKind, Budget, Candidate, Evaluation, HardwareSheet, Problem


class EndlessCoder(BlockCoder):
    """Always has another block size to offer, and all of them pass."""

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """A thousand options."""
        return tuple(Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK": size}) for size in range(1, 1000))

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Write a passing line of a plausible length."""
        size = int(task.plan.action.parameters["BLOCK"])
        return Draft(source=f"# block: {size}\n# time: {90 - size % 50}\n# parent: {task.plan.parent}\n" + "# filler\n" * 400)


def main() -> None:
    """Run once and print a table."""
    evaluations = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    settings = RunSettings(
        target="h200", memory=False, budget=Budget(evaluations=evaluations), search_settings=SearchSettings(patience=0, batch=4, width=4)
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        services = small_services(run, settings, team=small_team(EndlessCoder()))
        began: dict[str, float] = {}

        def listen(event: dict[str, object]) -> None:
            if event["event"] == "recalled":
                began.setdefault(str(event["recall"]).partition("/")[0], time.perf_counter())

        asyncio.run(execute(services, listen))
        steps = [b - a for a, b in pairwise(began.values())]
        tenth = max(1, len(steps) // 10)
        print(f"{platform.machine()}, Python {platform.python_version()}, langgraph {version('langgraph')}")
        print(f"candidates         {len(services.store.all('evaluation', Evaluation))}")
        print(f"rounds             {len(began)} of 4 plans")
        print(f"first tenth        {statistics.median(steps[:tenth]) * 1e3:.0f} ms a round (median)")
        print(f"last tenth         {statistics.median(steps[-tenth:]) * 1e3:.0f} ms a round (median)")
        print(f"last state         {_last_state(run) / 1024:.1f} KiB")
        print(f"checkpoints.db     {(run / 'checkpoints.db').stat().st_size / 2**20:.1f} MiB")


def _last_state(run: Path) -> int:
    """Bytes of the last checkpoint of the loop itself."""
    with sqlite3.connect(run / "checkpoints.db") as connection:
        rows = connection.execute("SELECT length(checkpoint) FROM checkpoints WHERE checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1")
        return int(rows.fetchone()[0])


if __name__ == "__main__":
    main()
