"""`kernelwright evaluate` at the command line: any kernel file judged, with an exit status that a script can use."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.cli.app import main
from tests.support.evidence import KERNEL, PROBLEM, WRONG_KERNEL

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run a command beside a problem and two kernels; return its exit status and what it printed."""
    for name, text in {"half_exp": PROBLEM, "kernel": KERNEL, "wrong": WRONG_KERNEL}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kernelwright", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        code: Any = ended.value.code
        return int(code or 0), said.out, said.err

    return run


@pytest.mark.slow
def test_a_right_kernel_passes_and_leaves_evidence(command: Command, tmp_path: Path) -> None:
    """PASS is status 0; the JSON has verdict, rule, errors, timing and tier; the bundle it names holds."""
    code, out, _ = command("evaluate", "half_exp.py", "kernel.py", "--stage", "search", "--bundle", "proof", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["verdict"], found["rule"], found["class"]) == ("PASS", None, "authored")
    assert (found["timing"] is None) == (found["tier"] == "estimated")
    assert found["errors"][0]["relative_l2"] <= found["errors"][0]["limit_relative_l2"]
    code, out, _ = command("verify", found["bundle"], "--expect", found["digest"], "--no-run", "--json")
    assert code == 0
    assert json.loads(out)["holds"] is True
    assert {path.name for path in (tmp_path / "proof").iterdir()} >= {"manifest.json", "kernel.py", "problem.py", "seeds.json"}


@pytest.mark.slow
def test_what_could_not_be_judged_is_status_3(command: Command, tmp_path: Path) -> None:
    """A problem that this machine judges no kernel of has a status of its own, a reason and a mend."""
    text = "import torch\n\ndef twice(x):\n    return x * 2\n\ndef example_inputs():\n    return [torch.randn(4096, 4096)]\n"
    (tmp_path / "large.py").write_text(f"{text}\nSMALL_SIZES = []\n")
    code, out, _ = command("evaluate", "large.py", "kernel.py", "--stage", "search", "--devices", "interpreter", "--json")
    found = json.loads(out)
    assert code == 3
    assert found["verdict"] == "INFRASTRUCTURE"
    assert "SMALL_SIZES" in found["notes"][0]


@pytest.mark.slow
def test_a_wrong_kernel_is_status_1(command: Command, tmp_path: Path) -> None:
    """Any other verdict is status 1, shown with its errors beside their limits; its bundle is written too."""
    code, out, _ = command("evaluate", "half_exp.py", "wrong.py", "--stage", "search", "--bundle", "proof")
    assert code == 1
    assert "WRONG" in out
    assert "limit" in out
    assert (tmp_path / "proof" / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("half_exp.py", "nowhere.py"), "nowhere.py"),
        (("nowhere.py", "kernel.py"), "nowhere.py"),
        (("half_exp.py", "kernel.py", "--target", "h9000"), "h9000"),
        (("half_exp.py", "kernel.py", "--bundle", "no/such/folder"), "no/such"),
        (("half_exp.py", "kernel.py", "--bundle", "."), "exists already"),
        (("half_exp.py", "kernel.py", "--entry", "other"), "other"),
    ],
)
def test_wrong_input_is_status_2(command: Command, arguments: tuple[str, ...], named: str) -> None:
    """A file, a target, a function or a place that cannot be used is named on standard error, before anything is evaluated."""
    code, out, err = command("evaluate", *arguments)
    assert (code, out) == (2, "")
    assert named in err
    assert "Traceback" not in err
