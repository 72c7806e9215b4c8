"""A suite's problems examined without optimising them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.kept_rows import KeptRows
from benchmarks.kernelbench import admitted

CONSTANT = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x - x.amax(1, keepdim=True))


def get_inputs():
    return [torch.randn(17, 33)]


def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_a_result_that_ignores_its_input_is_marked_and_a_row_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A problem whose result is always zero is marked, one that does work is not, and the same command asks for neither again."""
    level, out = tmp_path / "level1", tmp_path / "rows.jsonl"
    level.mkdir()
    (level / "1_Constant.py").write_text(CONSTANT)
    (level / "2_Shifted.py").write_text(CONSTANT.replace("torch.relu(x - x.amax(1, keepdim=True))", "x + 1"))
    monkeypatch.setattr(sys, "argv", ["admitted", str(tmp_path), "--out", str(out), "--levels", "1"])
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            admitted.main()
        assert ended.value.code == 0
    rows = {row["problem"]: row for row in KeptRows(out).rows}
    assert len(KeptRows(out).rows) == 2
    assert any("zeros" in mark for mark in rows["level1/1_Constant"]["marks"])
    assert rows["level1/2_Shifted"]["marks"] == []
    assert "level1/2_Shifted: nothing is marked" in capsys.readouterr().out
