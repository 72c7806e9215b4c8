"""Emitted sources compute what their references compute, at other sizes than those they were written for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.breadth import covering, unlike
from tests.tools.codegen.harness import at_small_sizes, generated, made_once, run_worker, trace_problem, traced, write_job
from tests.tools.codegen.samples import SAMPLES
from tools.codegen import emit, initial_schedule
from tools.problems import problem_from_module

PRODUCT = {"GROUP_M": 4, "num_warps": 4, "num_stages": 2, "right": "as_is"}
SETTINGS: dict[str, Any] = {
    "registers": {
        "pointwise": {"algorithm": "tile", "ELEMENTS": 4, "num_warps": 1},
        "rows": {"algorithm": "registers", "ROWS": 1, "num_warps": 4},
        "matmul": {**PRODUCT, "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "precision": "ieee", "accumulate": "direct"},
        "pooling": {"ELEMENTS": 4, "num_warps": 1},
    },
    "looped": {
        "pointwise": {"algorithm": "flat", "ELEMENTS": 2, "num_warps": 2},
        "rows": {"algorithm": "looped", "ROWS": 4, "BLOCK_N": 32, "num_warps": 4, "num_stages": 2},
        "matmul": {
            **PRODUCT, "BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 32, "precision": "tf32x3", "accumulate": "chunked", "right": "k_major",
        },
        "pooling": {"ELEMENTS": 2, "num_warps": 1},
    },
    "online": {
        "pointwise": {"algorithm": "tile", "ELEMENTS": 8, "num_warps": 4},
        "rows": {"algorithm": "online", "ROWS": 1, "BLOCK_N": 16, "num_warps": 4, "num_stages": 1},
        "matmul": {**PRODUCT, "BLOCK_M": 64, "BLOCK_N": 16, "BLOCK_K": 16, "precision": "ieee", "accumulate": "chunked"},
        "pooling": {"ELEMENTS": 8, "num_warps": 4},
    },
    "split": {
        "pointwise": {"algorithm": "tile", "ELEMENTS": 8, "num_warps": 4},
        "rows": {"algorithm": "split", "ROWS": 2, "BLOCK_N": 16, "SPLITS": 4, "num_warps": 4, "num_stages": 1},
        "matmul": {**PRODUCT, "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "precision": "ieee", "accumulate": "direct"},
        "pooling": {"ELEMENTS": 8, "num_warps": 4},
    },
}  # fmt: skip
"""Parameters of every template, by the row algorithm they exercise."""
ALIKE = {
    "running_logs",
    "whole_powers",
    "shifted",
    "permuted",
    "reductions",
    "outer_reductions",
    "normalised",
    "half_product",
    "rms",
    "half_softmax",
    "centred",
    "scans",
    "softmax",
    "whole",
    "gated",
}
"""Samples that run no line of the generator which none of the others runs: tried by `make test-all`."""
CASES = covering([(name, setting) for name in unlike(SAMPLES, ALIKE) for setting in ("library", *SETTINGS)])


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run every case at sizes it was not traced at, all in one process."""
    return made_once(tmp_path_factory, "emitted", _results)


def _results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = []
    for name, setting in CASES:
        problem, graph = traced(name)
        schedule = initial_schedule(graph) if setting == "library" else generated(graph, SETTINGS[setting])
        jobs.append(write_job(folder, f"{name}_{setting}", at_small_sizes(name), emit(problem, graph, schedule).source))
    return dict(zip(CASES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_emitted_source_matches_float64(results: Any, name: str, setting: str) -> None:
    """The emitted source is as accurate as the reference, within a factor of four, at small odd sizes."""
    result = results[name, setting]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_exported_module_gets_a_constructor_of_its_own(tmp_path: Path) -> None:
    """A module given in Python, kept as an archive, becomes a source whose state dict has the archive's keys."""
    module = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.LayerNorm(30)).eval()
    problem = problem_from_module(module, (torch.randn(17, 20),), name="stack")
    graph = trace_problem(problem)
    source = emit(problem, graph, generated(graph, SETTINGS["registers"])).source
    (result,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "stack", problem, source)], interpret=True)
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0
