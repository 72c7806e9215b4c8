"""Sums and maxima along the features of a product, made where its result is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import made_once, run_worker, traced_text, write_job
from tests.tools.codegen.templates.matmul.test_products import whole
from tools.codegen import emit
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import can_generate, plan_region
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

NORM = module(
    "self.l = torch.nn.Linear(c, 20); self.n = torch.nn.LayerNorm(20)", "return torch.relu(self.n(self.l(x))) + 1", "torch.randn(37, 8)"
)
SOURCES = {
    "norm": NORM,
    "softmax": module("self.l = torch.nn.Linear(c, 20)", "return torch.softmax(self.l(x) * 0.5, dim=-1)", "torch.randn(3, 7, 8)"),
    "best": module("self.l = torch.nn.Linear(c, 20)", "y = self.l(x); return y, y.amax(1), torch.logsumexp(y, 1)", "torch.randn(37, 8)"),
    "head": module("self.l = torch.nn.Conv2d(c, 20, 1)", "return torch.log_softmax(self.l(x), dim=1)", "torch.randn(2, 8, 7, 9)"),
}
TILES = {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP_M": 8, "num_warps": 4, "num_stages": 2}
WAYS: dict[str, dict[str, Any]] = {
    "ordinary": {**TILES, "precision": "ieee", "accumulate": "direct", "right": "as_is"},
    "halves": {**TILES, "precision": "fp16x3", "accumulate": "chunked", "right": "as_is", "programs": "persistent"},
    "exchanged": {**TILES, "precision": "tf32x3", "accumulate": "chunked", "right": "exchanged"},
}
CASES = [(name, way) for name in SOURCES for way in WAYS if (name, way) != ("head", "exchanged")]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run each in the interpreter."""
    return made_once(tmp_path_factory, "product_folds", _results)


def _results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = []
    for name, way in CASES:
        problem, graph, schedule = whole(SOURCES[name], WAYS[way])
        jobs.append(write_job(folder, f"{name}_{way}", problem, emit(problem, graph, schedule).source))
    return dict(zip(CASES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way"), CASES)
def test_what_looks_along_features_is_right(results: Any, name: str, way: str) -> None:
    """A norm, a softmax or a maximum over features is what the reference gives, in the product's own kernel, whatever multiplies."""
    assert "crash" not in results[name, way], results[name, way]["crash"]
    assert results[name, way]["error"] <= 1.0


def test_a_program_has_all_features_and_their_whole_sums() -> None:
    """First values and all that fit have one tile of features; shares of sums, or too few features, are refused in words."""
    _, graph, schedule = whole(NORM)
    (region,) = schedule.regions
    planned, sheet = plan_region(graph, region.nodes), load_sheet("h100")
    first = planned.defaults(132)
    assert (first["BLOCK_N"], first["SPLIT_K"]) == (32, 1)
    for change in ({"BLOCK_N": 16}, {"SPLIT_K": 2}, {"programs": "stream_k"}):
        assert not planned.fits({**first, **change}, next(iter(change)), sheet)
        assert planned.template.refusal(planned.kernel, {**first, **change})


def test_a_tile_is_asked_whether_it_holds_all() -> None:
    """A host function stops where there are more features than the tile that it was written for has."""
    problem, graph, schedule = whole(NORM)
    assert "assert n_cols <= 32" in emit(problem, graph, schedule).source


@pytest.mark.parametrize("forward", ["torch.softmax(self.l(x), dim=0)", "torch.cumsum(self.l(x), dim=1)", "self.m(x).amax(1)"])
def test_other_dimensions_are_no_tiles(forward: str) -> None:
    """What looks along rows, writes sums so far, or along more features than a tile has, is a kernel of its own."""
    layers = "self.l = torch.nn.Linear(c, 20); self.m = torch.nn.Linear(c, 300)"
    _, graph = traced_text(module(layers, f"return {forward}", "torch.randn(37, 8)"))
    assert not can_generate(graph, [node.name for node in graph.nodes if not is_view(node)])


def test_a_matrix_by_a_vector_has_no_features() -> None:
    """Where its result is summed again, as by the next of two thin products, the choices are made without such a kernel."""
    text = """import torch


def thin(x, shrink, expand, place):
    small = torch.bmm(shrink[place], x[:, :, None])
    return torch.bmm(expand[place], small).squeeze(-1)


def example_inputs():
    return torch.randn(64, 128), torch.randn(8, 16, 128), torch.randn(8, 128, 16), torch.randint(0, 8, (64,))
"""
    _, graph = traced_text(text)
    assert modelled_choices(graph, load_sheet("h100"), DEFAULT_POLICY, most=1)


def test_a_norm_after_a_small_layer_is_expected_to_gain() -> None:
    """Of a layer of 128 features and its norm one kernel is chosen: the product does not pass through memory."""
    source = module(
        "self.l = torch.nn.Linear(256, 128); self.n = torch.nn.LayerNorm(128)", "return self.n(self.l(x))", "torch.randn(65536, 256)"
    )
    _, graph = traced_text(source)
    (region,) = modelled_choices(graph, load_sheet("h100"), DEFAULT_POLICY, most=1)[0].schedule.regions
    assert region.template == "matmul"
