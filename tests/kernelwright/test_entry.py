"""The command as a process of its own: it closes what it opened, says all it has to say, and is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELD = """
import sys

class Held:
    def __del__(self):
        print("taken apart", file=sys.__stderr__)

held = Held()
held.itself = held
sys.argv = ["kernelwright", *sys.argv[1:]]
from kernelwright.cli.entry import main
main()
"""


def _run(*words: str, tmp: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"TMPDIR": str(tmp)}
    return subprocess.run(
        [sys.executable, "-c", HELD, *words], check=False, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=120
    )


def test_a_command_leaves_nothing_but_its_output(tmp_path: Path) -> None:
    """Processes that it started and folders that it made are gone, its text is whole, and what it imported is not taken apart."""
    done = _run("explain", "data/operators/softmax.py", "--stage", "kernels", tmp=tmp_path)

    assert done.returncode == 0
    assert len(done.stdout.splitlines()) > 3
    assert "taken apart" not in done.stderr
    assert not list(tmp_path.glob("kernelwright*"))


@pytest.mark.parametrize(("words", "status"), [(("--version",), 0), (("explain", "nosuch"), 2), (("--nosuch",), 2)])
def test_its_status_is_the_commands(tmp_path: Path, words: tuple[str, ...], status: int) -> None:
    """Success and wrong input end with the status that they have anywhere."""
    assert _run(*words, tmp=tmp_path).returncode == status


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    """Where standard output is full, the status says so."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", HELD, "--version"], check=False, stdout=full, stderr=subprocess.PIPE, cwd=ROOT, timeout=60
        )

    assert done.returncode != 0
