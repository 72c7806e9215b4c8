"""Emitted kernels compile to machine code for real targets, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
    """Every kernel of the representatives compiles for Hopper, and the first of them for Ampere."""
    jobs: list[dict[str, Any]] = []
    for place, (name, setting) in enumerate(REPRESENTATIVES):
        problem, graph = traced(name)
        source = emit(problem, graph, generated(graph, SETTINGS[setting])).source
        job = write_job(tmp_path, f"{name}_{setting}", at_small_sizes(name), source)
        jobs += [{**job, "arch": arch} for arch in ((90, 80) if place < 4 else (90,))]
    for job, result in zip(jobs, run_worker("compile_worker.py", jobs, interpret=False), strict=True):
        assert "crash" not in result, (job["source"], result["crash"])
        assert result["kernels"]
