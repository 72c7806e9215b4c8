"""Spools, requests and worker processes for the tests of the spool."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.spool_worker import small_problem
from tools.hardware import load_sheet
from tools.records import EvaluationRequest
from tools.spool import Spool

ROOT = Path(__file__).parents[3]

StartWorker = Callable[..., "subprocess.Popen[str]"]


def request_of(source: str, target: str = "h200", candidate: str = "c") -> EvaluationRequest:
    """A job for a scripted pool."""
    return EvaluationRequest(problem=small_problem(), candidate=candidate, source=source, target=load_sheet(target))


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    """An empty spool."""
    return Spool(tmp_path / "spool")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where scripted pools write what they began and ended."""
    file = tmp_path / "pool.log"
    file.touch()
    return file


@pytest.fixture
def start_worker(log: Path) -> Iterator[StartWorker]:
    """Start worker processes on a folder; what still runs at the end of the test is killed."""
    running = []

    def start(folder: Path, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.support.spool_worker", str(folder), str(log), *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def begun(log: Path) -> list[str]:
    """Keys of the evaluations that were begun, in order."""
    return [line.split()[1] for line in log.read_text().splitlines() if line.startswith("begin ")]


def wait_for(what: Callable[[], object], limit_s: float = 30.0) -> None:
    """Wait until `what` is true."""
    end = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


async def wait_until(what: Callable[[], object], limit_s: float = 30.0) -> None:
    """Wait until `what` is true, letting other tasks run."""
    end = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.02)
