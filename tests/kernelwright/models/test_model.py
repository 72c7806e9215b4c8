"""`kernelwright model` at the command line: from a model's file to a package that is proven on the whole model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernelwright.cli.app import main

MODEL = """import torch
from torch import nn

from neighbour import WIDTH


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x):
        return torch.tanh(x * self.scale) + torch.sigmoid(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Scaled(), Scaled()

    def forward(self, x):
        return self.second(self.first(x)), x.exp()


def make():
    return Net().eval()


def workloads():
    return {"rows": (torch.randn(6, 8),)}
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_a_model_becomes_a_package_that_is_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Capture, choice, one run, the package and the proof in the interpreter: right, used, undone, and nothing timed."""
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("WIDTH = 8\n")
    monkeypatch.chdir(tmp_path)
    words = ("net.py", "--out", "faster", "--budget", "1", "--largest", "5", "--no-memory", "--tune", "0", "--home", "home", "--json")
    monkeypatch.setattr(sys, "argv", ["kernelwright", "model", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["delivered"]) for one in found["operators"]] == [("scaled", True)]
    proof = found["proof"]
    assert proof["hits"] == {"scaled": 4}
    assert proof["restored"]
    assert proof["breaks"] == {"without": 0, "with": 0}
    assert all(one["error"] <= one["limit"] for one in proof["outputs"])
    assert not found["ratios"]
    assert "Not timed" in (tmp_path / "faster" / "report.md").read_text()
    assert (tmp_path / "faster" / "evidence" / "scaled" / "manifest.json").is_file()
