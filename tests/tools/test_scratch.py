"""Scratch folders and their removal."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tools.scratch import scratch, scratch_folder, sweep

OWNER = """
import os, sys, time
from pathlib import Path
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.problems.execution import run_source
from tools.references.processes import PROCESSES

run_source("X = 1", "a problem")
PROCESSES._client()
pool = WorkerPool(Path(sys.argv[1]), None)
print("made", flush=True)
if sys.argv[2] == "stays":
    time.sleep(600)
pool.close()
"""
HOLDER = """
import os, sys, time
from pathlib import Path
from tools.scratch import scratch_folder

print(scratch_folder("mine-", Path(sys.argv[1])), flush=True)
if sys.argv[2] == "stays" or not os.fork():
    time.sleep(600)
"""


@pytest.fixture
def began() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are killed in the end."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _start(began: list[subprocess.Popen[str]], code: str, *words: str, temporary: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    began.append(process)
    return process


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_run_removes_what_a_killed_one_left_and_nothing_of_a_living_one(tmp_path: Path, began: list[subprocess.Popen[str]]) -> None:
    """Folders of problems, references and phases go when the next pool opens, if their owner was killed."""
    temporary, phases = tmp_path / "tmp", tmp_path / "scratch"
    temporary.mkdir()
    killed = _start(began, OWNER, str(phases), "stays", temporary=temporary)
    assert _said(killed) == "made"
    of_killed = {*temporary.iterdir(), *phases.iterdir()}
    living = _start(began, OWNER, str(phases), "stays", temporary=temporary)
    assert _said(living) == "made"
    of_living = {*temporary.iterdir(), *phases.iterdir()} - of_killed
    assert len(of_killed) == len(of_living) == 3
    _kill(killed)
    following = _start(began, OWNER, str(phases), "ends", temporary=temporary)
    assert following.wait() == 0
    assert {*temporary.iterdir(), *phases.iterdir()} == of_living


def test_a_folder_is_its_owners_childrens_too(tmp_path: Path, began: list[subprocess.Popen[str]]) -> None:
    """While a fork of a dead owner lives, the folder stays."""
    owner = _start(began, HOLDER, str(tmp_path), "forks", temporary=tmp_path)
    folder = Path(_said(owner))
    assert owner.wait() == 0
    sweep("mine-", tmp_path)
    assert folder.exists()


def test_folders_of_nobody_known_stay(tmp_path: Path) -> None:
    """A folder without a lock file, another kind's, and one that is held here are not removed."""
    (tmp_path / "mine-unknown").mkdir()
    other = scratch_folder("other-", tmp_path)
    with scratch("mine-", tmp_path) as held:
        sweep("mine-", tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {"mine-unknown", other.name, held.name}
    assert not held.exists()


def test_a_link_to_another_folder_is_not_followed(tmp_path: Path, began: list[subprocess.Popen[str]]) -> None:
    """Who puts a link among the folders does not have removed what it leads to."""
    owner = _start(began, HOLDER, str(tmp_path), "stays", temporary=tmp_path)
    folder = Path(_said(owner))
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "mine-link").symlink_to(folder)
    _kill(owner)
    sweep("mine-", tmp_path / "links")
    assert folder.exists()
    sweep("mine-", tmp_path)
    assert not folder.exists()
