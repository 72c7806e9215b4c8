"""Programs of `benchmarks/` called in this process: one of their own takes seconds to import what this one has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

Called = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    """Call a program's `main` with arguments, and return its exit status and what it printed."""

    def call(main: Callable[[], None], *arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", [main.__module__, *arguments])
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        else:
            code = 0
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(code or 0), said.out, said.err)

    return call
