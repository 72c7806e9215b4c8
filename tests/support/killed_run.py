"""A run in a process of its own that kills itself with SIGKILL when a node is entered or left.

Usage: python -m tests.support.killed_run FOLDER NODE enter|leave [BASE_URL [SEARCH]]; NODE `-` never kills.
With BASE_URL a language model plays every role over that server; SEARCH names another search method than greedy.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents import build_team, team_settings
from graphs.optimize.execute import execute
from graphs.optimize.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.loop import small_services
from tools.records import Budget
from tools.tracing import RunStore


class KillingStore(RunStore):
    """Kills its process at one edge of one node."""

    node = "-"
    edge = "enter"

    @contextmanager
    def span(self, node: str, subject: str, given: str) -> Iterator[list[str]]:
        """Record the span, and die where told."""
        if (node, self.edge) == (self.node, "enter"):
            os.kill(os.getpid(), signal.SIGKILL)
        with super().span(node, subject, given) as output:
            yield output
        if (node, self.edge) == (self.node, "leave"):
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run or continue the run in FOLDER."""
    folder, node, edge = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    if not (folder / "run.db").is_file():
        RunStore.create(folder, {"run": folder.name, "created": "0"}).close()
    store = KillingStore(folder)
    store.node, store.edge = node, edge
    team, batch = None, 2
    search = sys.argv[5] if len(sys.argv) > 5 else "greedy"
    if len(sys.argv) > 4 and sys.argv[4]:
        # one plan at a time: a kill then finds no request of another plan under way, so every request can be counted
        team, batch = build_team(team_settings("scripted", sys.argv[4], ["coder=llm"]), store), 1
    settings = RunSettings(
        target="h200", memory=False, search=search, budget=Budget(evaluations=40), search_settings=SearchSettings(batch=batch)
    )
    delivery = asyncio.run(execute(small_services(folder, settings, store=store, team=team), lambda event: None))
    sys.stdout.write(delivery.candidate)


if __name__ == "__main__":
    main()
