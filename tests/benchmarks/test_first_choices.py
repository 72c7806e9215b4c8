"""The model's first choices as a folder of kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.confirm_kernels import delivered
from benchmarks.first_choices import write
from tools.errors import UserError
from tools.hardware import load_sheet

REFERENCE = (
    "import torch\n\ndef double(x):\n    return torch.softmax(x * 2, dim=-1)\n\ndef example_inputs():\n    return [torch.randn(64, 96)]\n"
)


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
    """A problem that the suite lacks is named, and nothing is taken down as done."""
    (tmp_path / "softmax.py").write_text(REFERENCE)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"problem": "level1/1_double", "number": 1, "status": "kernel"}) + "\n")
    with pytest.raises(UserError, match="has no level1/1_double"):
        write(tmp_path, tmp_path / "out", [rows], "", load_sheet("h200"))
    assert not (tmp_path / "out").exists()


def test_rows_that_are_not_there_are_refused(tmp_path: Path) -> None:
    """A file that does not exist is named, and no folder is begun."""
    with pytest.raises(UserError, match=r"There is no .*none\.jsonl"):
        write(tmp_path, tmp_path / "out", [tmp_path / "none.jsonl"], "", load_sheet("h200"))
    assert not (tmp_path / "out").exists()
