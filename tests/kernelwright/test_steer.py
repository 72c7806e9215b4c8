"""The command line of `steer`: what it records, shows and refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernelwright.cli.app import main
from tests.kernelwright.conftest import Refused
from tests.support.loop import small_services


def _said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["kernelwright", "steer", "begun", *arguments, "--home", str(home)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_what_is_asked_is_recorded_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first line says how the run stands; each thing asked has its time and when it counts; --json has the same."""
    small_services(tmp_path / "runs" / "begun").store.close()
    said = _said(monkeypatch, capsys, tmp_path, "--pause", "--hint", "Mind the tail.", "--veto", "root")
    assert "begun is paused; nobody works on it: kernelwright resume begun" in said
    assert "hint     Mind the tail. (in force at the next round)" in said
    facts = json.loads(_said(monkeypatch, capsys, tmp_path, "--continue", "--json"))
    assert [one["kind"] for one in facts["asked"]] == ["pause", "hint", "veto", "continue"]
    assert not facts["paused"]


def test_a_slip_is_one_line(refused: Refused, tmp_path: Path) -> None:
    """Opposites, unknown runs and unknown candidates are refused."""
    small_services(tmp_path / "home" / "runs" / "begun").store.close()
    assert "opposites" in refused("steer", "begun", "--pause", "--continue")
    assert "0 ids of candidates" in refused("steer", "begun", "--pin", "zzz")
    assert "kernelwright runs" in refused("steer", "nothing", "--pause")
