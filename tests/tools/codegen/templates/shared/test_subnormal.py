"""What a GPU's fast instructions would take for zero keeps its value in emitted kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, unseen, write_job
from tools.codegen import emit

TEXT = """import torch

ROWS = 64
COLS = 48
SMALL_SIZES = [{"ROWS": 5, "COLS": 7}, {"ROWS": 8, "COLS": 16}]


def formula(x, y):
    return FORMULA


def example_inputs():
    small = torch.full((ROWS, COLS), -1e-39) * (torch.rand(ROWS, COLS) < 0.3)
    return torch.rand(ROWS, COLS) * 1e-38 + 1e-42, small
"""
EXACT = {
    "x.rsqrt()": "inverse_root(", "x.pow(-0.5)": "inverse_root(", "x.sum(-1).clamp(min=1e-40).rsqrt()": "inverse_root(",
    "(x + 1e-38).rsqrt()": "inverse_root(", "y.floor()": "floor_of_any(", "(-y).ceil()": "ceil_of_any(",
}  # fmt: skip
FAST = (
    "(x.mean(-1) + 1e-6).rsqrt()", "x.clamp(min=1e-12).rsqrt()", "torch.maximum(x, torch.full_like(x, 1e-20)).rsqrt()",
    "(x * 1e38).half().rsqrt()", "((y + 1) * 16 - 0.5).floor()", "x.sqrt().rsqrt()",
)  # fmt: skip


def source_of(formula: str) -> str:
    """Write one formula."""
    problem, graph = traced_text(TEXT.replace("FORMULA", formula))
    return emit(problem, graph, generated(graph, {})).source


@pytest.mark.parametrize("formula", EXACT)
def test_what_may_be_subnormal_is_not_flushed(formula: str) -> None:
    """A root's reciprocal would be infinite, and a whole number another one."""
    assert EXACT[formula] in source_of(formula)


@pytest.mark.parametrize("formula", FAST)
def test_what_cannot_be_subnormal_takes_the_instruction(formula: str) -> None:
    """A number that is added, a bound below or a shorter format says so."""
    source = source_of(formula)
    assert "inverse_root" not in source
    assert "_of_any" not in source


@pytest.mark.slow
def test_subnormal_numbers_are_scaled_in_machine_code(tmp_path: Path) -> None:
    """The instruction flushes what it is given on a GPU: 2^24 times as much is normal. Results match float64 in the interpreter."""
    jobs: list[dict[str, Any]] = []
    for place, formula in enumerate(EXACT):
        at_small = unseen(TEXT.replace("FORMULA", formula).replace("ROWS = 64", "ROWS = 5"), "formula")
        jobs.append({**write_job(tmp_path, f"formula_{place}", at_small, source_of(formula)), "arch": 90})
    for job, found in zip(jobs, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert found.get("error", 2.0) <= 1.0, (job["source"], found)
    for formula, found in zip(EXACT, run_worker("compile_worker.py", jobs, interpret=False), strict=True):
        assert "crash" not in found, found["crash"]
        code = "".join(kernel["ptx"] for kernel in found["kernels"])
        # 2^24 and 2^-126 as PTX writes them, or a comparison with the number itself
        wanted = ("rsqrt.approx", "0f4B800000", "0f00800000") if "inverse" in EXACT[formula] else ("cvt.r", "setp")
        assert all(word in code for word in wanted), formula
