"""A model with a loop over time: from its capture to a package that is proven in the interpreter."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernelwright.cli.app import main

MODEL = """import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.given, self.before = nn.Linear(4, 8), nn.Linear(8, 8)

    def forward(self, x):
        state, found = x.new_zeros(x.shape[0], 8), []
        for step in range(x.shape[1]):
            state = torch.tanh(self.given(x[:, step]) + self.before(state)) * 0.5 + state * 0.5
            found.append(state)
        return torch.stack(found, 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Recurrent()

    def forward(self, x):
        return self.layer(x) + torch.rand(8)


def make():
    return Net().eval()


def workloads():
    return {"rows": (torch.randn(2, 24, 4),)}
"""


@pytest.mark.slow
def test_a_loop_over_time_becomes_an_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its kernel is right in the whole model, and its guard keeps the number of steps, not that of rows."""
    (tmp_path / "net.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    words = ("net.py", "--out", "faster", "--budget", "0", "--target", "h200", "--no-memory", "--home", "home", "--json")
    monkeypatch.setattr(sys, "argv", ["kernelwright", "model", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    found = json.loads(capsys.readouterr().out)
    assert found["proof"]["hits"] == {"recurrent": 2}
    assert all(one["error"] <= one["limit"] for one in found["proof"]["outputs"])
    guards = (tmp_path / "faster" / "table.py").read_text()
    assert "x.shape[1] == 24" in guards
    assert "x.shape[0] == 2" not in guards
