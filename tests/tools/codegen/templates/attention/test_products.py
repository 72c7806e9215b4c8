"""Attention whose scores are a sum of products is one kernel that gives what torch gives, each product with operands of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering
from tests.tools.codegen.harness import compiled_for_hopper, interpreted, made_once, traced_text
from tests.tools.codegen.score_samples import COMPUTED, SUMS, UNSPLIT, sums
from tools.codegen import emit, initial_schedule
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.options import fusions
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.attention.layout import attention_layout_of
from tools.hardware import load_sheet

TILES: dict[str, dict[str, Any]] = {
    "first": {},
    "stepped": {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_V": 32, "BLOCK_D": 16},
    "split": {"BLOCK_M": 16, "BLOCK_N": 16, "SPLIT_KEYS": 4},
}
REFUSED = {"split": UNSPLIT, "stepped": COMPUTED}
CASES = covering([(name, tiles) for name in SUMS for tiles in TILES if name not in REFUSED.get(tiles, ())])


def planned(text: str) -> Planned:
    """Take all of a reference as one region."""
    graph = traced_text(text)[1]
    return plan_region(graph, tuple(node.name for node in graph.nodes if not is_view(node)))


def source_of(name: str, tiles: str) -> str:
    """Write a sample as one attention."""
    problem, graph = traced_text(SUMS[name])
    nodes = tuple(node.name for node in graph.nodes if not is_view(node))
    parameters = {**plan_region(graph, nodes).defaults(132), **TILES[tiles]}
    return emit(problem, graph, Schedule(regions=(Region(id="r0", nodes=nodes, template="attention", parameters=parameters),))).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run all samples at sizes they were not traced at."""
    return made_once(tmp_path_factory, "attention_products", lambda folder: interpreted(folder, SUMS, CASES, source_of))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tiles"), CASES)
def test_a_sum_of_products_matches_float64(results: Any, name: str, tiles: str) -> None:
    """One kernel, or one and the sum of its parts, is as accurate as the reference at small odd sizes."""
    assert "crash" not in results[name, tiles], results[name, tiles]["crash"]
    assert results[name, tiles]["error"] <= 1.0


@pytest.mark.slow
def test_sums_of_products_compile(tmp_path: Path) -> None:
    """Shared keys, a latent cache whose keys are the values, and joined operands compile for Hopper."""
    cases = [("latent_brain", "first"), ("latent_cache", "split"), ("joined_operator", "stepped")]
    for result in compiled_for_hopper(tmp_path, SUMS, cases, source_of):
        assert "crash" not in result, result["crash"]


@pytest.mark.parametrize("name", ["latent", "latent_cache", "joined", "joined_operator", "disentangled"])
def test_all_products_and_joined_operands_are_offered_as_one_kernel(name: str) -> None:
    """The products of scores, what joins their operands, weights and the second product are regions that one action fuses."""
    graph = traced_text(SUMS[name])[1]
    schedule = initial_schedule(graph)
    parts = {region.id for region in schedule.regions}
    assert parts in [set(action.region.split("+")) for action in fusions(graph, schedule, load_sheet("h200"))]


@pytest.mark.parametrize(("name", "queries", "keys"), [("latent", 2, 2), ("joined_operator", 2, 2), ("disentangled", 2, 2)])
def test_an_operand_of_two_products_is_one_tile(name: str, queries: int, keys: int) -> None:
    """Queries or keys that several products share are read once."""
    layout = attention_layout_of(planned(SUMS[name]).kernel)
    assert (len(layout.queries), len(layout.keys)) == (queries, keys)


def test_joined_operands_are_not_written() -> None:
    """What two concatenations lay out is read in pieces: nothing of the whole is left in the module."""
    assert "cat(" not in source_of("joined", "first").split("class ModelNew")[1]


def test_values_that_are_keys_are_loaded_once() -> None:
    """A latent cache that is keys and values gives one tile for both products where it is held whole, and two where it is not."""
    assert "values = keys" in source_of("latent_cache", "split")
    assert "values = keys" not in source_of("latent_cache", "stepped")


@pytest.mark.parametrize("name", ["latent_cache_of_few", "one_query_for_groups"])
def test_heads_that_share_keys_are_rows_of_one_tile(name: str) -> None:
    """Where queries are few, keys are read once for all heads that share them."""
    layout = attention_layout_of(planned(SUMS[name]).kernel)
    assert layout.n_rows in (6 * 2, 3)
    assert layout.n_outer == 2 * 6 // (6 if layout.n_rows == 12 else 3)


def test_a_cache_of_wide_latents_is_held_whole() -> None:
    """Keys of 512 elements that are the values go through one tile, with rows as few as the sums of these allow."""
    text = SUMS["latent_cache"].replace("DIM = 24", "DIM = 512").replace("1, 6, ", "1, 128, ").replace("torch.randn(", "_half(")
    half = "\n\ndef _half(*shape):\n    return torch.randn(*shape, dtype=torch.bfloat16)\n"
    first = planned(text + half).defaults(132)
    assert {first[name] for name in ("BLOCK_D", "BLOCK_V")} == {512}
    assert first["BLOCK_M"] == 64


MANY = " + ".join(f"q @ k{place}.mT" for place in range(5))
SAME = {
    "too many": (f"return torch.softmax({MANY}, -1) @ k0", ", ".join(f"k{place}" for place in range(5)), "more than 4 products"),
    "one key": ("return torch.softmax(q @ k[:1].expand(COLS, -1).mT, -1) @ v", "k, v", "all the same"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_has_no_tile_is_refused(name: str) -> None:
    """More products than there are names for, and keys of which there is one, are not generated."""
    body, names, why = SAME[name]
    rows = ", ".join("torch.randn(COLS, DIM)" for _ in names.split(","))
    with pytest.raises(LoweringError, match=why):
        planned(sums(body, f"torch.randn(ROWS, DIM), {rows}", f"q, {names}"))
