"""What a command's streams carry while it works."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from kernelwright.cli.shared.waiting import printing_aside, waiting


def test_what_an_operator_prints_is_not_in_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """Printed by Python, written to the descriptor or said by a child: all of it goes to standard error."""
    sys.stdout.write("before\n")
    with printing_aside():
        sys.stdout.write("printed\n")
        os.write(1, b"written\n")
        os.system("echo from a child")
    sys.stdout.write("the answer\n")
    said = capfd.readouterr()
    assert said.out == "before\nthe answer\n"
    assert all(word in said.err for word in ("printed", "written", "from a child"))


def test_a_long_silence_is_broken(capfd: pytest.CaptureFixture[str]) -> None:
    """While work goes on a line says so every few seconds, and none after it."""
    with waiting("reading operator.py", every_s=0.01):
        threading.Event().wait(0.1)
    said = capfd.readouterr().err.splitlines()
    assert len(said) >= 2
    assert all(line.startswith("kernelwright: reading operator.py, ") for line in said)


def test_who_watches_a_terminal_is_told_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line comes after a few seconds there; a log has one only after a long silence."""
    for watched in (True, False):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda watched=watched: watched)
        monkeypatch.setattr(sys, "stderr", stream)
        with waiting("reading operator.py", first_s=0.01):
            threading.Event().wait(0.1)
        assert len(stream.getvalue().splitlines()) == watched


def test_what_takes_a_moment_is_not_mentioned(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A command that ends at once prints nothing about waiting."""
    with waiting("reading operator.py"):
        assert tmp_path.exists()
    assert capfd.readouterr().err == ""
