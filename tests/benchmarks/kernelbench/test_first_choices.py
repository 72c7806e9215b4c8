"""The model's first choices as a folder of kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kernelbench.confirm_kernels import delivered
from benchmarks.kernelbench.first_choices import write
from tests.tools.codegen.compute_samples import module
from tools.errors import UserError
from tools.hardware import load_sheet

REFERENCE = (
    "import torch\n\ndef double(x):\n    return torch.softmax(x * 2, dim=-1)\n\ndef example_inputs():\n    return [torch.randn(64, 96)]\n"
)
SUMMED = module("self.layer = torch.nn.Linear(2048, 2048)", "return self.layer(x).sum(1)", "torch.randn(64, 2048)")


def test_each_problem_that_has_a_kernel_gets_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels come with the rows' figures, others are left out, and a second call writes nothing again."""
    suite, out, rows = tmp_path / "clone", tmp_path / "out", tmp_path / "rows.jsonl"
    levels = suite / "KernelBench"
    (levels / "level1").mkdir(parents=True)
    lines: list[dict[str, Any]] = []
    for number, status in ((1, "kernel"), (2, "reference"), (3, "kernel")):
        (levels / "level1" / f"{number}_double.py").write_text(REFERENCE)
        gains = {"speedups": {"eager": [2.0, 1.9, 2.1]}, "candidate_us": 10.0 + number}
        lines.append({"problem": f"level1/{number}_double", "number": number, "status": status, **gains})
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    write(suite, out, [rows], "1", load_sheet("h200"))
    assert [one.number for one in delivered([out])] == [1]
    capsys.readouterr()
    write(suite, out, [rows], "", load_sheet("h200"))
    assert capsys.readouterr().out.count("µs expected") == 1
    found = delivered([out])
    assert [(one.problem, one.us, one.speedups) for one in found] == [
        ("level1/1_double", 11.0, {"eager": 2.0}),
        ("level1/3_double", 13.0, {"eager": 2.0}),
    ]
    assert all("class ModelNew" in one.source and "@triton.jit" in one.source for one in found)


def test_another_suite_than_the_rows_is_refused(tmp_path: Path) -> None:
    """Where the suite has no problem of the rows one is named, and nothing is taken down as done."""
    (tmp_path / "softmax.py").write_text(REFERENCE)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"problem": "level1/1_double", "number": 1, "status": "kernel"}) + "\n")
    with pytest.raises(UserError, match="has no level1/1_double, nor any other"):
        write(tmp_path, tmp_path / "out", [rows], "", load_sheet("h200"))
    assert not (tmp_path / "out").exists()


def test_a_suite_may_have_a_part_of_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of problems that the suite lacks are counted and left out."""
    (tmp_path / "clone" / "KernelBench" / "level1").mkdir(parents=True)
    (tmp_path / "clone" / "KernelBench" / "level1" / "2_double.py").write_text(REFERENCE)
    rows = tmp_path / "rows.jsonl"
    row = {"status": "kernel", "candidate_us": 9.0, "speedups": {}}
    rows.write_text("".join(json.dumps(row | {"problem": f"level1/{n}_double", "number": n}) + "\n" for n in (1, 2)))
    write(tmp_path / "clone", tmp_path / "out", [rows], "", load_sheet("h200"))
    assert "1 of 2 rows are of problems" in capsys.readouterr().out
    assert [one.number for one in delivered([tmp_path / "out"])] == [2]


def test_rows_that_are_not_there_are_refused(tmp_path: Path) -> None:
    """A file that does not exist is named, and no folder is begun."""
    with pytest.raises(UserError, match=r"There is no .*none\.jsonl"):
        write(tmp_path, tmp_path / "out", [tmp_path / "none.jsonl"], "", load_sheet("h200"))
    assert not (tmp_path / "out").exists()


@pytest.mark.thorough
def test_choices_can_be_asked_to_pack_nothing(tmp_path: Path) -> None:
    """Where weights change nothing is packed."""
    level = tmp_path / "clone" / "KernelBench" / "level1"
    level.mkdir(parents=True)
    (level / "1_summed.py").write_text(SUMMED)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"problem": "level1/1_summed", "number": 1, "status": "kernel", "candidate_us": 9.0, "speedups": {}}) + "\n")
    for changing in (False, True):
        out = tmp_path / str(changing)
        write(tmp_path / "clone", out, [rows], "", load_sheet("h200"), changing=changing)
        assert ("def pack_weights" in delivered([out])[0].source) != changing
