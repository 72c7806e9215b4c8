"""A run in a process of its own that kills itself with SIGKILL when a node is entered or left.

Usage: python -m tests.support.killed_run, with a JSON list of words on each line of its input: OUT FOLDER NODE enter|leave
[BASE_URL [SEARCH]]. NODE `-` never kills. With BASE_URL a language model plays every role over that server; SEARCH names another
search method than greedy. Each line is a run in a process forked for it, which prints into the files OUT.out and OUT.err; its exit
status is answered with a line. What would be most of the time of each run is done once, before there is any: the libraries are
imported, the prompts are read and the problem is traced, which would take each run a process that imports torch.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

# imported so that no run has to; what talks to models waits for `_get_ready`, since every test worker imports this file
import torch  # noqa: F401

from agents import build_team, team_settings
from agents.coder.traced import begin_trace
from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.support.forking import print_into, serve
from tests.support.loop import small_problem, small_services
from tools.evaluation.processes.zygote_ancestry import ANCESTRY
from tools.hardware import load_sheet
from tools.records import Budget
from tools.references.processes import PROCESSES
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


class KilledRuns:
    """Two processes that runs are forked from in turns: a run is resumed under another order of sets than it was killed under."""

    def __init__(self) -> None:
        """Start them; they import while nobody waits."""
        self._turns = itertools.cycle([self._start(seed) for seed in ("1", "2")])

    def _start(self, hash_seed: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.support.killed_run"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=Path(__file__).parents[2], env=environment, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        for process in (next(self._turns), next(self._turns)):
            process.communicate(timeout=60)

    def run(self, folder: Path, node: str, edge: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run or continue the run in `folder`."""
        out = folder.parent / "printed"
        out.parent.mkdir(exist_ok=True)
        process = next(self._turns)
        assert process.stdin is not None
        assert process.stdout is not None
        words = [str(out), str(folder), node, edge, *more]
        process.stdin.write(json.dumps(words) + "\n")
        process.stdin.flush()
        status = int(process.stdout.readline())
        return subprocess.CompletedProcess(words, status, out.with_suffix(".out").read_text(), out.with_suffix(".err").read_text())


def _run(folder: Path, node: str, edge: str, base_url: str = "", search: str = "greedy") -> None:
    if not (folder / "run.db").is_file():
        RunStore.create(folder, {"run": folder.name, "created": "0"}).close()
    store = KillingStore(folder)
    store.node, store.edge = node, edge
    team, batch = None, 2
    if base_url:
        # one plan at a time: a kill then finds no request of another plan under way, so every request can be counted
        team, batch = build_team(team_settings("scripted", base_url, ["coder=llm", "profiler=llm", "reviewer=llm"], team="full"), store), 1
    # a search method's state is as long in the making as its budget, and is whole long before
    budget = Budget(evaluations=40 if search == "greedy" else 16)
    settings = RunSettings(target="h200", memory=False, search=search, budget=budget, search_settings=SearchSettings(batch=batch))
    delivery = asyncio.run(execute(small_services(folder, settings, store=store, team=team), lambda event: None))
    sys.stdout.write(delivery.candidate)


def _work(out: str, folder: str, *words: str) -> None:
    """Be one run, as a process of its own is."""
    print_into(f"{out}.out", f"{out}.err")
    _run(Path(folder), *words)


def _get_ready() -> None:
    """Do once what each run would do, and leave neither a thread nor a process."""
    import langchain_openai  # noqa: F401

    from agents.coder import llm as coder
    from agents.planner import llm as planner
    from agents.profiler import llm as profiler
    from agents.reviewer import llm as reviewer

    for prompts in (coder.PROMPTS, planner.PROMPTS, profiler.PROMPTS, reviewer.PROMPTS):
        for name in prompts.names():
            prompts._environment.get_template(name)
    begin_trace(small_problem(), load_sheet("h200")).result()
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()
    PROCESSES.close()
    ANCESTRY.close()


if __name__ == "__main__":
    _get_ready()
    serve(_work)
