"""Zygotes are forked from processes that the whole supervisor shares: torch is imported once, and whatever of them dies is started anew."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.errors import MachineError
from tools.evaluation.processes.zygote_ancestry import Ancestry, Zygote, clean_environment

INTERPRETED = clean_environment({"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""})

KILLED_WHILE_IMPORTING = """
import contextlib, os, threading, time
from pathlib import Path
from tools.evaluation.processes.zygote_ancestry import ANCESTRY, clean_environment

threading.Thread(target=ANCESTRY.zygote, args=[clean_environment({})], daemon=True).start()
end = time.monotonic() + 50
while time.monotonic() < end:
    for pid in [word for one in Path("/proc/self/task").iterdir() for word in (one / "children").read_text().split()]:
        with contextlib.suppress(OSError):
            if b"torch" in Path(f"/proc/{pid}/maps").read_bytes():
                print(pid, flush=True)
                os.kill(os.getpid(), 9)
    time.sleep(0.01)
"""


@pytest.fixture
def ancestry() -> Iterator[Ancestry]:
    """One of its own, since its processes are killed."""
    made = Ancestry()
    yield made
    made.close()


def test_zygotes_of_one_environment_share_what_is_imported(ancestry: Ancestry) -> None:
    """Each has a process of its own; its parent, which has Triton, and that one's, which has torch, are the same."""
    zygotes = [ancestry.zygote(INTERPRETED) for _ in range(2)]
    lines = [_line(zygote) for zygote in zygotes]
    assert lines[0][0] != lines[1][0]
    assert lines[0][1:] == lines[1][1:]
    assert len(lines[0]) == 3
    assert all(zygote.versions.keys() == {"python", "torch", "numpy", "triton"} for zygote in zygotes)
    for zygote in zygotes:
        zygote.kill()


@pytest.mark.parametrize("generation", [1, 2], ids=["the warm one", "the first"])
def test_a_parent_that_died_is_started_anew(ancestry: Ancestry, generation: int) -> None:
    """The zygotes below it end with it, and the next one has new parents."""
    before = ancestry.zygote(INTERPRETED)
    line = _line(before)
    os.kill(line[generation], signal.SIGKILL)
    assert _ends(before)
    after = ancestry.zygote(INTERPRETED)
    assert not set(_line(after)[: generation + 1]) & set(line)
    after.kill()


@pytest.mark.parametrize("library", ["torch", "triton"])
def test_what_does_not_import_is_said(ancestry: Ancestry, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a library is broken the error has its own words."""
    (tmp_path / f"{library}.py").write_text("raise ImportError('libexotic.so.7 is missing')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MachineError, match=r"libexotic\.so\.7 is missing"):
        ancestry.zygote(INTERPRETED)


def test_all_end_when_it_is_closed(ancestry: Ancestry) -> None:
    """A zygote that nobody has ended ends with its parents."""
    zygote = ancestry.zygote(INTERPRETED)
    ancestry.close()
    assert _ends(zygote)


def test_a_supervisor_that_is_killed_takes_a_zygote_along_that_still_imports() -> None:
    """Nothing of it is left to import for seconds what nobody asks for any more."""
    where = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    program = [sys.executable, "-c", KILLED_WHILE_IMPORTING]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60, env=where)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert _gone(int(done.stdout), 2.0)


def _gone(pid: int, within_s: float) -> bool:
    """Whether a process has ended, fetched or not, some time from now at the latest."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def _ends(zygote: Zygote) -> bool:
    """Whether it ends by itself, in ten seconds at most; then it is put away."""
    ended = bool(select.select([zygote._pidfd], [], [], 10.0)[0])
    zygote.kill()
    return ended


def _line(zygote: Zygote) -> list[int]:
    """Process ids of a zygote, its parent and so on up to the one that this process has started."""
    text = Path(f"/proc/self/fdinfo/{zygote._pidfd}").read_text()
    pids = [int(text.partition("Pid:")[2].split()[0])]
    while (parent := _parent(pids[-1])) != os.getpid():
        pids.append(parent)
    return pids


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
