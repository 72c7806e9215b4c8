"""Attention with grouped heads, windows, caps, single queries and quantised caches is one kernel that gives what torch gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering
from tests.tools.codegen.attention_samples import NO_SOFTMAX, VARIANTS, reference
from tests.tools.codegen.harness import compiled_for_hopper, interpreted, made_once, run_worker, traced_text, write_job
from tools.codegen import emit, initial_schedule
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.options import fusions
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.attention.bounds import bounds_of, walked_share
from tools.hardware import load_sheet

TILES: dict[str, dict[str, Any]] = {
    "first": {},
    "small": {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_V": 32},
    "split": {"BLOCK_M": 16, "BLOCK_N": 16, "SPLIT_KEYS": 4},
}
CASES = covering([(name, tiles) for name in VARIANTS for tiles in TILES if tiles != "split" or name not in NO_SOFTMAX])


def whole(name: str) -> tuple[Any, Any, Any, tuple[str, ...]]:
    """Trace a variant and take all of it as one region."""
    problem, graph = traced_text(VARIANTS[name])
    nodes = tuple(node.name for node in graph.nodes if not is_view(node))
    return plan_region(graph, nodes), problem, graph, nodes


def source_of(name: str, tiles: str) -> str:
    """Write a variant as one attention."""
    planned, problem, graph, nodes = whole(name)
    parameters = {**planned.defaults(132), **TILES[tiles]}
    return emit(problem, graph, Schedule(regions=(Region(id="r0", nodes=nodes, template="attention", parameters=parameters),))).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run all variants at sizes they were not traced at."""
    return made_once(tmp_path_factory, "attention_variants", lambda folder: interpreted(folder, VARIANTS, CASES, source_of))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tiles"), CASES)
def test_variant_matches_float64(results: Any, name: str, tiles: str) -> None:
    """One kernel, or one and the sum of its parts, is as accurate as the reference at small odd sizes."""
    assert "crash" not in results[name, tiles], results[name, tiles]["crash"]
    assert results[name, tiles]["error"] <= 1.0


@pytest.mark.slow
def test_variants_compile(tmp_path: Path) -> None:
    """Windows, decode with split keys, a quantised cache and weights without a softmax compile for Hopper."""
    cases = [("window", "first"), ("decode", "split"), ("quantised_cache", "first"), ("retention", "first")]
    cases += [("chosen_keys", "first"), ("log_sum", "split")]
    for result in compiled_for_hopper(tmp_path, VARIANTS, cases, source_of):
        assert "crash" not in result, result["crash"]


@pytest.mark.parametrize(
    ("name", "above", "below"),
    [
        ("window", 1, 1),
        ("added_window", 1, 1),
        ("capped_by_distance", 1, 0),
        ("decode", 1, 0),
        ("grouped", 0, 0),
        ("repeated_heads", 1, 0),
        ("retention", 1, 0),
        ("squared_relu", 1, 0),
        ("sigmoid_window", 1, 1),
    ],
)
def test_masked_keys_are_not_walked(name: str, above: int, below: int) -> None:
    """What a mask of positions leaves out is read off logits or weights, and bounds the loop over the keys."""
    found = bounds_of(whole(name)[0].kernel)
    assert (sum(bound.above for bound in found), sum(not bound.above for bound in found)) == (above, below)


def test_another_product_is_no_part_of_an_attention() -> None:
    """What is added to an attention without a softmax, as the states of a linear recurrence by chunks are, is a kernel of its own."""
    text = """
import torch

ROWS, WIDE = 32, 16


def both(q, k, v, decay, state):
    return ((q @ k.transpose(-2, -1)) * decay) @ v + q @ state


def example_inputs():
    rows = [torch.randn(2, ROWS, WIDE) for _ in range(3)]
    return *rows, torch.randn(2, ROWS, ROWS), torch.randn(2, WIDE, WIDE)
"""
    graph = traced_text(text)[1]
    products = [node.name for node in graph.nodes if node.op == "matmul"]
    assert len(products) == 3
    nodes = tuple(node.name for node in graph.nodes if not is_view(node))
    with pytest.raises(LoweringError, match="another product do not share"):
        plan_region(graph, nodes)


def test_what_divides_by_the_sum_afterwards_joins() -> None:
    """Two products, the weights between them, and the division by their sum are offered as one kernel."""
    graph = traced_text(VARIANTS["divided_afterwards"])[1]
    schedule = initial_schedule(graph)
    parts = {region.id for region in schedule.regions}
    assert parts in [set(action.region.split("+")) for action in fusions(graph, schedule, load_sheet("h200"))]


REFUSED = {
    "half precision": ("s = q @ k.mT\n    return (s / s.sum(-1, keepdim=True)) @ v", ".half()", "may exceed it"),
    "two sums": ("s = q @ k.mT\n    return (s / (s.sum(-1, keepdim=True) + s.abs().sum(-1, keepdim=True))) @ v", "", "two sums"),
    "no factor": ("s = q @ k.mT\n    return torch.relu(s - s.sum(-1, keepdim=True)) @ v", "", "no factor of its row"),
    "before a softmax": ("s = q @ k.mT\n    return torch.softmax(s / s.sum(-1, keepdim=True), -1) @ v", "", "beside their softmax"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_sum_of_scores_that_cannot_wait_is_refused(name: str) -> None:
    """Only a factor of a row can be put on its result afterwards, and only where what is left fits the format."""
    body, cast, why = REFUSED[name]
    rows = f"torch.randn(2, ROWS, DIM){cast}"
    graph = traced_text(reference(body, f"{rows}, {rows}, {rows}", "q, k, v"))[1]
    with pytest.raises(LoweringError, match=why):
        plan_region(graph, tuple(node.name for node in graph.nodes if not is_view(node)))


def test_the_keys_that_a_mask_leaves_are_counted() -> None:
    """To the cost model half of a square is walked under a causal mask, and of a window its width for every tile."""
    causal, window = (whole(name)[0].kernel for name in ("squared_relu", "sigmoid_window"))
    assert [walked_share(causal, 64, 64, 1), walked_share(causal, 16, 64, 1)] == [0.5, 0.125]
    assert [walked_share(window, 64, 64, tile) for tile in (1, 16, 64)] == [9 / 64, 24 / 64, 1.0]


def test_a_window_starts_at_its_first_key() -> None:
    """The walk of a window begins with the block that holds the first key of the tile's first row."""
    text = source_of("window", "small")
    assert "begin = tl.maximum(0, pid_m * BLOCK_M - 8) // BLOCK_N * BLOCK_N" in text
    assert "end = tl.minimum(n_cols, (pid_m + 1) * BLOCK_M)" in text


def test_a_quantised_cache_is_read_as_it_is_stored() -> None:
    """Keys and values in int8 are read as such, and no copy in half precision is made."""
    text = source_of("quantised_cache", "first")
    assert text.count("tl.load(k_") == 2
    assert "mul(" not in text.split("def forward")[1]


def test_what_is_rounded_anyway_has_a_plain_exponential() -> None:
    """Weights of half precision have the device's own exponential, since they are rounded more coarsely; others keep the accurate one."""
    assert "tl.exp(" in source_of("retention", "first")
    assert "exp_accurate(" in source_of("divided_afterwards", "first")


WINDOW_OF_THE_LAYER = """import torch

HEADS, KEYS, DIM, WINDOW = 3, 40, 16, 9
SMALL_SIZES = [{"HEADS": 2, "KEYS": 11, "DIM": 5, "WINDOW": 3}, {"HEADS": 1, "KEYS": 16, "DIM": 16, "WINDOW": 4}]


class Model(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, q, k, v):
        mask = torch.triu(q.new_full((q.shape[1], q.shape[1]), float("-inf")), 1)
        mask = mask + torch.tril(torch.full_like(mask, float("-inf")), -self.window)
        return torch.softmax(q @ k.transpose(-2, -1) * 0.3 + mask, -1) @ v


def get_inputs():
    return [torch.randn(HEADS, KEYS, DIM) for _ in range(3)]


def get_init_inputs():
    return [WINDOW]
"""


@pytest.mark.parametrize("splits", [1, 4])
def test_a_window_is_as_wide_as_the_layer_says(tmp_path: Path, splits: int) -> None:
    """A number of the constructor's that no shape tells is given to the one kernel, whose keys it bounds."""
    problem, graph = traced_text(WINDOW_OF_THE_LAYER, "layer")
    nodes = tuple(node.name for node in graph.nodes if not is_view(node))
    planned = plan_region(graph, nodes)
    assert {bound.above for bound in bounds_of(planned.kernel)} == {True, False}
    parameters = {**planned.defaults(132), **TILES["split" if splits > 1 else "small"]}
    schedule = Schedule(regions=(Region(id="r0", nodes=nodes, template="attention", parameters=parameters),))
    job = write_job(tmp_path, "layer", problem, emit(problem, graph, schedule).source)
    result = run_worker("interpreter_worker.py", [job], interpret=True)[0]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0
