"""Emitted kernels compile to machine code for real targets, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering
from tests.tools.codegen.harness import at_small_sizes, generated, run_worker, traced, write_job
from tests.tools.codegen.module.test_emitted import SETTINGS
from tools.codegen import emit

REPRESENTATIVES = (
    ("activations", "registers"),
    ("softmax", "registers"),
    ("strided_softmax", "online"),
    ("centred", "split"),
    ("cross_entropy", "looped"),
    ("products", "looped"),
    ("half_product", "registers"),
    ("dtypes", "registers"),
    ("scans", "looped"),
    ("scans", "registers"),
    ("pooling", "registers"),
    ("outer_reductions", "split"),
)


@pytest.mark.slow
def test_emitted_kernels_compile(tmp_path: Path) -> None:
    """Every kernel of the representatives compiles, for Hopper or for Ampere."""
    jobs: list[dict[str, Any]] = []
    for (name, setting), arch in covering([*((one, 90) for one in REPRESENTATIVES), *((one, 80) for one in REPRESENTATIVES[:4])]):
        problem, graph = traced(name)
        source = emit(problem, graph, generated(graph, SETTINGS[setting])).source
        jobs.append({**write_job(tmp_path, f"{name}_{setting}_{arch}", at_small_sizes(name), source), "arch": arch})
    for job, result in zip(jobs, run_worker("compile_worker.py", jobs, interpret=False), strict=True):
        assert "crash" not in result, (job["source"], result["crash"])
        assert result["kernels"]
