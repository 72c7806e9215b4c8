"""What tests of the command line share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.cli.app import main

Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Refused:
    """Run a command that must be refused; return what it printed on standard error."""

    def run(*arguments: str, status: int = 2) -> str:
        monkeypatch.setattr(sys, "argv", ["kernelwright", *arguments])
        monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == status
        assert said.out == ""
        assert "Traceback" not in said.err
        return said.err

    return run
