"""Dense, transposed, pointwise and depthwise convolutions as kernels of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import DIRECT
from tests.tools.codegen.harness import problem_of, run_worker, write_job
from tests.tools.codegen.test_products import WAYS, whole
from tools.codegen import emit, limits, trace


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every convolution, the pointwise ones as products of halves too."""
    folder = tmp_path_factory.mktemp("convolutions")
    chosen = {name: (source, None) for name, source in DIRECT.items()} | {"halves": (DIRECT["pointwise"], WAYS["halves_split"])}
    jobs = []
    for name, (source, way) in chosen.items():
        problem, graph, schedule = whole(source, {**way, "right": "as_is"} if way else None)
        jobs.append(write_job(folder, name, problem, emit(problem, graph, schedule).source))
    return dict(zip(chosen, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DIRECT, "halves"])
def test_convolution_matches_float64(results: Any, name: str) -> None:
    """A generated convolution is as accurate as the reference at odd sizes, with strides, padding and dilation."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= 1.0


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("depthwise", "depthwise"),
        ("pointwise", "matmul"),
        ("dense", "convolution"),
        ("transposed", "convolution"),
        ("groups", "convolution"),
    ],
)
def test_template_follows_the_kernel_size(name: str, template: str) -> None:
    """A kernel of one element is a product, one channel by itself a window, all others gathered products."""
    assert whole(DIRECT[name])[2].regions[0].template == template


@pytest.mark.slow
def test_convolutions_compile(tmp_path: Path) -> None:
    """Kernels of each template compile for Ampere, Hopper and Blackwell, and a dense one without TF32 for CDNA 3."""
    jobs = []
    for name, arch in (
        ("transposed_strided_dilated", 90),
        ("depthwise", 90),
        ("pointwise", 80),
        ("dense", 90),
        ("transposed", 80),
        ("few_channels", 100),
        ("groups", 80),
        ("groups", 100),
        ("transposed_in_groups", 90),
        ("dense", "gfx942"),
    ):
        problem, graph, schedule = whole(DIRECT[name])
        if arch == "gfx942":
            (region,) = schedule.regions
            schedule = schedule.replaced(region.model_copy(update={"parameters": {**region.parameters, "precision": "ieee"}}))
        jobs.append({**write_job(tmp_path, f"{name}_{arch}", problem, emit(problem, graph, schedule).source), "arch": arch})
    for result in run_worker("compile_worker.py", jobs, interpret=False):
        assert "crash" not in result, result["crash"]


def test_other_convolutions_are_left_with_their_reason() -> None:
    """Single channels along one dimension stay with the library, which says why; larger groups do not."""
    source = DIRECT["line_in_groups"]
    assert not limits(trace(problem_of(source)))
    single = source.replace("Conv1d(c, 6, 5, dilation=2, groups=2)", "Conv1d(c, 8, 5, groups=c)")
    (limit,) = limits(trace(problem_of(single)))
    assert "one input channel a group is left to the library unless it is depthwise in two dimensions" in limit.reason
