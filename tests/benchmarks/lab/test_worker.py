"""The worker that answers a spool by the lab."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.kept_rows import KeptRows
from tests.benchmarks.interrupting import start
from tests.benchmarks.lab.sources import doing, kernel_for, small_problem
from tools.errors import Postponed
from tools.evaluation import EvaluationRequest
from tools.hardware import load_sheet
from tools.records import Problem, content_hash
from tools.spool import Spool, SpoolPool


def begun(folder: Path, problem: Problem) -> tuple[subprocess.Popen[str], Path]:
    """A worker with a kept reference, one source in its compiler and one on its device, neither of which ever ends."""
    spool, store, source = folder / "spool", folder / "lab.jsonl", kernel_for(problem)
    marks = [folder / "compiling", folder / "running"]
    lines = [f"open({str(mark)!r}, 'w').close(); __import__('time').sleep(600)" for mark in marks]
    program = [sys.executable, "-m", "benchmarks.lab.worker", str(spool), str(store), "--cpu", "--compilers", "2", "--judges", "1"]
    worker = start(program, cwd=Path(__file__).parents[3], stdout=subprocess.DEVNULL)
    ask(spool, problem, [f"{lines[0]}\n{source}", doing(source, lines[1])])
    while not all(mark.exists() for mark in marks):
        time.sleep(0.05)
    return worker, store


def ask(spool: Path, problem: Problem, sources: list[str]) -> None:
    """Ask for a reference's time, which comes, and leave jobs to judge sources."""
    sheet = load_sheet("h200")
    for source in sources:
        request = EvaluationRequest(problem=problem, candidate="c", source=source, target=sheet)
        with pytest.raises(Postponed):
            asyncio.run(SpoolPool(spool, wait=False).evaluate(request))
    asyncio.run(SpoolPool(spool).baselines(problem, sheet))


@pytest.mark.thorough
@pytest.mark.slow
def test_a_signal_ends_it_within_seconds_whatever_is_in_flight(tmp_path: Path) -> None:
    """Compilers and devices are killed, jobs go back to the spool, and the store holds what was judged and nothing else."""
    problem = small_problem(tmp_path)
    worker, store = begun(tmp_path, problem)
    began = time.monotonic()
    worker.send_signal(signal.SIGINT)
    ended = worker.wait(10)

    assert time.monotonic() - began < 8
    assert ended == 0
    assert [row["key"] for row in KeptRows(store).rows] == [content_hash(problem.id, "baselines")]
    assert len(Spool(tmp_path / "spool").job_files()) == 2
