"""The largest and the smallest element of a row with NaN is NaN, and lies where the first one does, as in PyTorch, however it is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tests.tools.codegen.templates.matmul.test_products import whole as as_product
from tests.tools.codegen.templates.test_memory_bound import SETTINGS, settings
from tests.tools.codegen.templates.tile.test_tiles import whole as as_tiles
from tools.codegen import OperatorGraph, Schedule, emit

PLACES = "torch.tensor([0, COLS // 2, COLS - 1, COLS, 1])[:, None]"
"""Where each row has a NaN: first, in the middle, last, nowhere, second."""
ROWS = (
    f"torch.randn(5, COLS).masked_fill((torch.arange(COLS) == COLS // 3) & ({PLACES} != COLS), {{}}float('inf')).masked_fill("
    f"(torch.arange(COLS) == {PLACES}) | ((torch.arange(COLS) == COLS - 2) & ({PLACES} == 1)), float('nan'))"
)
"""Rows whose NaN have an infinity beside them, and one of which has two."""
LARGEST, SMALLEST = ROWS.format(""), ROWS.format("-")
FOUND = {
    "amax": ("x.amax({})", LARGEST), "amin": ("x.amin({})", SMALLEST), "max": ("x.max({})", LARGEST), "min": ("x.min({})", SMALLEST),
    "argmax": ("x.argmax({})", LARGEST), "argmin": ("x.argmin({})", SMALLEST),
    "both": ("(*x.max({0}), x.argmin({0}))", SMALLEST), "absolute": ("torch.linalg.vector_norm(x, float('inf'), {})", LARGEST),
}  # fmt: skip
"""What looks along a dimension, and its input."""
BY_HAND = "(lambda m: (m, (x - m).exp() / (x - m).exp().sum(1, keepdim=True)))(x.amax(1, keepdim=True))"
ALL = {place: f"torch.randn(COLS).index_fill(0, torch.tensor([{place}]), float('nan'))" for place in ("0", "COLS // 2", "COLS - 1")}
SAMPLES = {
    **{f"{name} of rows": function(text.format(1), rows) for name, (text, rows) in FOUND.items()},
    **{f"{name} of columns": function(text.format(0), f"{rows}.t().contiguous()") for name, (text, rows) in FOUND.items()},
    **{f"of all, at {place}": function("(x.amax(), x.min(), x.argmax())", given) for place, given in ALL.items()},
    "of short rows": function(
        "(x.amax(1), x.min(1)[0], x.argmax(1))", "torch.randn(37, 3).masked_fill(torch.rand(37, 3) < 0.2, float('nan'))"
    ),
    "of halves": function("(*x.max(1), x.argmin(1), x.amin(1))", f"{LARGEST}.half()"),
    "of short floats": function("(*x.min(1), x.argmax(1), x.amax(1))", f"{SMALLEST}.bfloat16()"),
    "of doubles": function("(*x.min(1), x.argmax(1), x.amax(1))", f"{SMALLEST}.double()"),
    "shares by hand": function(BY_HAND, LARGEST),
    "scaled": function("x / x.abs().amax(1, keepdim=True)", LARGEST),
    "pooled": function("F.adaptive_max_pool1d(x[None], 1)", LARGEST),
}
"""By name: source text."""
ALONG_ROWS, TILES = ("blocks", "block", "levels", "shared", "l2_two_pass", "whole"), ("first", "looped", "split")
WAYS: dict[str, Callable[[OperatorGraph], Schedule]] = {
    **{way: lambda graph, way=way: generated(graph, SETTINGS[way]) for way in ALONG_ROWS},
    "rows": lambda graph: generated(graph, settings("flat", algorithm="online", ROWS=2)),
    "shared_rows": lambda graph: generated(graph, settings("flat", algorithm="split", ROWS=2)),
    **{f"tile_{way}": lambda graph, way=way: as_tiles(graph, way) for way in TILES},
}
"""Schedules of all ways to look along a row."""
CASES = [(name, way) for name in SAMPLES for way in WAYS if (name, way[:4]) != ("pooled", "tile")]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run every case in one process."""
    return made_once(tmp_path_factory, "nan", _results)


def _results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = []
    for place, (name, way) in enumerate(CASES):
        problem, graph = traced_text(SAMPLES[name])
        jobs.append(write_job(folder, f"case_{place}", problem, emit(problem, graph, WAYS[way](graph)).source))
    return dict(zip(CASES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize(("name", "way"), CASES)
def test_what_is_no_number_is_found(results: Any, name: str, way: str) -> None:
    """In registers, block by block and shared by several programs, NaN in any place is the extremum, and its first place is that."""
    assert "crash" not in results[name, way], results[name, way]["crash"]
    assert results[name, way]["error"] <= 1.0


@pytest.mark.parametrize("layer", ["Linear(c, 20)", "Conv2d(c, 20, 3)"])
def test_what_is_no_number_is_found_among_features(tmp_path: Path, layer: str) -> None:
    """Where a product's features, or a convolution's channels, are looked along in its own kernel, NaN is their extremum, too."""
    given = "torch.randn(37, 8)" if "Linear" in layer else "torch.randn(2, 8, 7, 9)"
    forward = "y = torch.log(self.l(x) + 1); return y, y.amax(1), y.amin(1), y.argmax(1)"
    problem, graph, schedule = as_product(module(f"self.l = torch.nn.{layer}", forward, given))
    (found,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "features", problem, emit(problem, graph, schedule).source)], True)
    assert found.get("error", found) <= 1.0


@pytest.mark.parametrize("text", ["torch.softmax(x, 1)", "torch.logsumexp(x, 1)", "x.int().amax(1)"])
@pytest.mark.parametrize("way", WAYS)
def test_no_other_maximum_asks(text: str, way: str) -> None:
    """In a softmax NaN shows in what is made relative to the maximum, and whole numbers have none: both take Triton's own maximum."""
    problem, graph = traced_text(function(text))
    source = emit(problem, graph, WAYS[way](graph)).source
    assert "tl.max" in source
    assert "propagate_nan" not in source
