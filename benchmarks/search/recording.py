"""What recording a run costs: the share of its wall time spent writing it down, and sending its spans to a collector on this machine.

Two runs: a real one of a sample operator, and one whose agents and evaluator answer at once, to see what a candidate costs as they grow.
Usage: python -m benchmarks.search.recording [--operator FILE] [--budget N] [--embedder NAME] [--candidates N]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.search.loop_overhead import EndlessCoder
from graphs.optimize.execute import execute
from graphs.run.assembly import assemble, start_run
from graphs.run.context import Services
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from kernelwright.viewers.otlp import OtlpViewer
from kernelwright.viewers.settings import ENDPOINTS
from kernelwright.viewers.watching import Watch
from tests.support.collector import Collector
from tests.support.loop import small_services, small_team
from tools.records import Budget, Candidate, Record
from tools.references.reading import read_problem
from tools.tracing import RunStore
from tools.tracing.store import Row


class TimedStore(RunStore):
    """Adds up how long writing took, and how much of it each candidate."""

    def __init__(self, folder: Path) -> None:
        """Open the run in `folder`."""
        self.seconds = 0.0
        self.at_candidate: list[float] = []
        self._inside = False
        super().__init__(folder)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the outermost call only."""
        if self._inside:
            yield
            return
        self._inside, began = True, time.perf_counter()
        try:
            yield
        finally:
            self._inside = False
            self.seconds += time.perf_counter() - began

    def put(self, kind: str, name: str, record: Record, subject: str = "") -> None:
        """Write a record."""
        with self._timed():
            super().put(kind, name, record, subject)

    def put_row(self, row: Row) -> None:
        """Write a row."""
        with self._timed():
            super().put_row(row)

    def put_call(self, key: str, record_json: str) -> None:
        """Write a call."""
        with self._timed():
            super().put_call(key, record_json)

    def put_candidate(self, candidate: Candidate) -> None:
        """Write a candidate, and take down what was spent until here."""
        with self._timed():
            super().put_candidate(candidate)
        self.at_candidate.append(self.seconds)

    @contextmanager
    def span(self, node: str, subject: str, given: str) -> Iterator[list[str]]:
        """Write a node's beginning and end; what the node does is not counted."""
        span = super().span(node, subject, given)
        with self._timed():
            output = span.__enter__()
        try:
            yield output
        finally:
            with self._timed():
                span.__exit__(None, None, None)


class TimedViewer(OtlpViewer):
    """Adds up the processor time of its looks, all of which is taken from the run."""

    seconds = 0.0
    spans = 0

    def look(self, *, stopped: bool = False) -> int:
        """Send what is new."""
        began = time.thread_time()
        count = super().look(stopped=stopped)
        self.seconds += time.thread_time() - began
        self.spans += count
        return count


def measured(services: Services, store: TimedStore) -> Mapping[str, float]:
    """See a run through with a collector listening; seconds of all, of writing and of sending."""
    with Collector() as collector:
        os.environ[ENDPOINTS[1]] = collector.url
        viewer = TimedViewer(store)
        watch = Watch([viewer])
        began = time.perf_counter()
        asyncio.run(execute(services, lambda event: None))
        wall = time.perf_counter() - began
        watch.close()
    return {"wall": wall, "writing": store.seconds, "sending": viewer.seconds, "spans": viewer.spans, "received": len(collector.spans)}


def real_run(operator: Path, budget: int, embedder: str, home: Path) -> Mapping[str, float]:
    """A whole run of an operator, with the evaluator of this machine and no model."""
    settings = RunSettings(problem_file=str(operator), embedder=embedder, budget=Budget(evaluations=budget))
    store = start_run(read_problem(operator, settings.policy).problem, settings, home)
    store.close()
    timed = TimedStore(store.folder)
    return measured(assemble(timed), timed)


def quick_run(candidates: int, folder: Path) -> tuple[Mapping[str, float], list[float]]:
    """A run whose candidates cost nothing but what the loop takes; seconds of writing for each."""
    search = SearchSettings(patience=0, batch=4, width=4)
    settings = RunSettings(target="h200", memory=False, budget=Budget(evaluations=candidates), search_settings=search)
    small_services(folder, settings).store.close()
    store = TimedStore(folder)
    found = measured(small_services(folder, settings, team=small_team(EndlessCoder()), store=store), store)
    return found, [after - before for before, after in zip(store.at_candidate, store.at_candidate[1:], strict=False)]


def main() -> None:
    """Print what was found."""
    options = _options()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as scratch:
        found = real_run(options.operator, options.budget, options.embedder, Path(scratch))
        _show(f"{options.operator.stem}, budget {options.budget}", found)
        found, each = quick_run(options.candidates, Path(scratch) / "quick")
        _show(f"{options.candidates} candidates that cost nothing", found)
        tenth = max(1, len(each) // 10)
        print(f"  writing a candidate  first tenth {_mean_ms(each[:tenth])}, last tenth {_mean_ms(each[-tenth:])}")


def _show(name: str, found: Mapping[str, Any]) -> None:
    share: Callable[[str], str] = lambda what: f"{found[what]:.3f} s, {found[what] / found['wall']:.2%}"  # noqa: E731 - a column of the table
    print(name)
    print(f"  wall                 {found['wall']:.1f} s")
    print(f"  writing              {share('writing')}")
    print(f"  sending              {share('sending')} ({found['spans']} spans, {found['received']} received)")


def _mean_ms(seconds: list[float]) -> str:
    return f"{statistics.mean(seconds) * 1e3:.2f} ms"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operator", type=Path, default=Path("data/operators/softmax.py"))
    parser.add_argument("--budget", type=int, default=8, help="evaluations of the real run")
    parser.add_argument("--embedder", default="default", help="as `kernelwright optimize` takes it")
    parser.add_argument("--candidates", type=int, default=400, help="of the other")
    return parser.parse_args()


if __name__ == "__main__":
    main()
