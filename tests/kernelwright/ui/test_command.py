"""`kernelwright ui` from its start to its end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from kernelwright.cli.app import main


def test_to_be_stopped_is_its_ordinary_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is what it says to press: nothing was broken off, and the exit status is 0."""

    def stopped(self: uvicorn.Server, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(uvicorn.Server, "run", stopped)
    monkeypatch.setattr(sys, "argv", ["kernelwright", "ui", "--port", "0", "--home", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capsys.readouterr().err.splitlines()[1:] == ["Stop with Ctrl-C."]
