"""Means and extremes by index are sums, counts and maxima of whole numbers, and agree with PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit

XYZ = "x, y, z"
BY_INDEX = "torch.randn(9, 6), torch.randint(0, 7, (37, 6)), torch.randn(37, 6)"
BY_ROW = "torch.randn(9, 6), torch.randint(0, 7, (37,)), torch.randn(37, 6)"
ROOTS = "torch.randn(9, 6), torch.randint(0, 7, (37, 6)), (torch.rand(37, 6) - 0.05).sqrt()"
HALVES = "torch.randn(6, 9).half(), torch.randint(0, 8, (6, 20)), torch.randn(6, 20).half()"
CALL = "x.scatter_reduce({}, y, z, '{}', include_self={})"
SAMPLES = {
    "mean": function(CALL.format(0, "mean", False), BY_INDEX, XYZ),
    "mean_of_rows": function("x.scatter_reduce(0, y[:, None].expand_as(z), z, 'mean', include_self=False)", BY_ROW, XYZ),
    "mean_with_itself": function(CALL.format(0, "mean", True), BY_INDEX, XYZ),
    "sum_without_itself": function(CALL.format(0, "sum", False), BY_INDEX, XYZ),
    "largest": function(CALL.format(0, "amax", False), BY_INDEX, XYZ),
    "largest_with_itself": function(CALL.format(0, "amax", True), BY_INDEX, XYZ),
    "least": function(CALL.format(0, "amin", False), BY_INDEX, XYZ),
    "least_with_itself": function(CALL.format(-2, "amin", True), BY_INDEX, XYZ),
    "largest_of_halves": function(CALL.format(1, "amax", False), HALVES, XYZ),
    "largest_that_is_no_number": function(CALL.format(0, "amax", False) + ".isnan()", ROOTS, XYZ),
    "least_that_is_no_number": function(CALL.format(0, "amin", False) + ".isnan()", ROOTS, XYZ),
    **{
        f"{kind}_of_a_filled_{dtype}": function(
            f"torch.full_like(x, {number}, dtype=z.dtype).scatter_reduce({dim}, y, z, '{kind}')", inputs, XYZ
        )
        for kind, number, dtype, dim, inputs in (
            ("amax", "float('-inf')", "float32", 0, BY_INDEX),
            ("amin", 0.1, "float32", 0, BY_INDEX),
            ("amax", -0.0, "float16", 1, HALVES),
        )
    },
    "counts": function("torch.bincount(x, minlength=9) + y", "torch.randint(0, 9, (300,)), torch.randn(9)", "x, y"),
    "counts_of_bytes": function("torch.bincount(x, minlength=9) * y", "torch.randint(0, 9, (300,)).byte(), torch.randn(9)", "x, y"),
    "weights_by_number": function(
        "torch.bincount(x, y, minlength=9) * z", "torch.randint(0, 9, (300,)), torch.randn(300), torch.randn(9)", XYZ
    ),
    "counts_of_the_first": function("torch.bincount(x, minlength=9)[:9]", "torch.randint(0, 12, (300,))"),
    "histogram": function("torch.histc(x, 10, -1.5, 1.0)", "(torch.randn(9, 40) * 8).round() / 8"),
    "histogram_with_what_is_no_number": function("torch.histc(x.sqrt() * 3, bins=7, min=0.1, max=2)", "torch.randn(9, 40)"),
    "in_new_places": function(
        "torch.zeros(x.shape[0], z.shape[1], dtype=z.dtype, device=z.device).scatter_reduce(0, y, z, 'amax', include_self=False) + x",
        BY_INDEX,
        XYZ,
    ),
}


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process."""
    return made_once(tmp_path_factory, "scatter_reduce", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = [write_job(folder, name, *_written(name)) for name in SAMPLES]
    return dict(zip(SAMPLES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


def _written(name: str) -> tuple[Any, str]:
    problem, graph = traced_text(SAMPLES[name], name)
    return problem, emit(problem, graph, generated(graph, {})).source


@pytest.mark.parametrize("name", SAMPLES)
def test_a_reduction_by_index_is_as_torch_has_it(results: Any, name: str) -> None:
    """Places that nothing goes to keep what they had, and what is no number is the largest and the least."""
    result = results[name]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.mark.parametrize("name", SAMPLES)
def test_a_reduction_by_index_is_generated(name: str) -> None:
    """Nothing of it is left to the library."""
    assert "torch.ops" not in _written(name)[1]


def test_counts_have_no_more_dimensions_than_their_index() -> None:
    """An index that was expanded over the elements of rows counts rows, not their elements."""
    source = _written("mean_of_rows")[1]
    assert "torch.full((9, 1), 0, dtype=torch.int32" in source
