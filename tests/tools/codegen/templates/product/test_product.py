"""Products whose operands are computed in the loop, and several products a kernel, give what torch gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.harness import compiled_for_hopper, interpreted, made_once, run_worker, traced_text, write_job
from tests.tools.codegen.product_samples import COMPUTED, HALF, reference
from tools.codegen import emit
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.product.shared_memory import shared_bytes
from tools.hardware import load_sheet

TILES: dict[str, dict[str, Any]] = {
    "first": {},
    "small": {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16},
    "split": {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "SPLIT_K": 2},
}
ALIKE = {"int4_groups", "gated", "logarithms", "gated_batches", "low_rank", "int4_words"}
"""Samples that run no line of the generator which none of the others runs: tried by `make test-all`."""
CASES = covering([(name, tiles) for name in unlike(COMPUTED, ALIKE) for tiles in TILES], also={("gated_beside_channels", "split")})


def whole(source: str) -> tuple[Planned, Any, Any, tuple[str, ...]]:
    """Take all of a reference as one region."""
    problem, graph = traced_text(source)
    nodes = tuple(node.name for node in graph.nodes if not is_view(node))
    return plan_region(graph, nodes), problem, graph, nodes


def planned(name: str) -> tuple[Planned, Any, Any, tuple[str, ...]]:
    """Trace a sample and take all of it as one region."""
    return whole(COMPUTED[name])


def source_of(name: str, tiles: str) -> str:
    """Write a sample as one kernel."""
    found, problem, graph, nodes = planned(name)
    parameters = {**found.defaults(132), **TILES[tiles]}
    return emit(
        problem, graph, Schedule(regions=(Region(id="r0", nodes=nodes, template=found.template.name, parameters=parameters),))
    ).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run all samples at sizes they were not traced at."""
    return made_once(tmp_path_factory, "computed_products", lambda folder: interpreted(folder, COMPUTED, CASES, source_of))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tiles"), CASES)
def test_computed_product_matches_float64(results: Any, name: str, tiles: str) -> None:
    """One kernel computes operands and products as accurately as the reference, at small odd sizes."""
    assert "crash" not in results[name, tiles], results[name, tiles]["crash"]
    assert results[name, tiles]["error"] <= 1.0


@pytest.mark.slow
def test_computed_products_compile(tmp_path: Path) -> None:
    """Packed, scaled and several operands compile for Hopper."""
    cases = [(name, "first") for name in ("int4_groups", "int4_words", "int4_rows_of_words", "float8", "gated")]
    for result in compiled_for_hopper(tmp_path, COMPUTED, cases, source_of):
        assert "crash" not in result, result["crash"]


def test_whole_numbers_are_multiplied_in_short_floats() -> None:
    """Operands in float32 that bfloat16 holds exactly are multiplied in it, with a sum for every step."""
    layout: Any = planned("rounded_rows")[0].template.layout(planned("rounded_rows")[0].kernel)
    assert [(each.dtype, each.chunked) for each in layout.products] == [("bfloat16", True)]


def test_scale_of_a_channel_leaves_the_loop() -> None:
    """A factor that does not vary along the sum scales the finished sum, so that the loop converts whole numbers alone."""
    layout: Any = planned("int8_channels")[0].template.layout(planned("int8_channels")[0].kernel)
    assert len(layout.products[0].factors) == 1


def test_two_numbers_of_a_byte_are_two_products() -> None:
    """Packed weights are read once and as they lie: each of two numbers in a byte is multiplied by its half of the sum."""
    layout: Any = planned("int4_groups")[0].template.layout(planned("int4_groups")[0].kernel)
    assert len(layout.products[0].left) == 2
    assert "packed_ptr" in source_of("int4_groups", "first")


def test_numbers_of_a_word_are_as_many_products() -> None:
    """Eight numbers of four bits come of a word that is read once, and of a group that is read once a step, by shifts in 32 bits."""
    text = source_of("int4_words", "small")
    layout: Any = planned("int4_words")[0].template.layout(planned("int4_words")[0].kernel)
    assert (len(layout.products[0].left), text.count("tl.dot("), text.count("tl.load(packed_ptr"), text.count("tl.load(x_ptr")) == (
        8,
        8,
        1,
        1,
    )
    assert '% 16 == 0, "a step lies within one group"' in text
    assert "int64" not in text


def test_words_along_rows_and_columns_are_taken_apart_in_one_kernel() -> None:
    """Weights packed along the sum and zero points packed along the columns count the same places, each along its own dimension."""
    text = source_of("int4_rows_of_words", "small")
    assert (text.count("tl.load(packed_ptr"), text.count("tl.load(packed_zeros_ptr")) == (1, 1)
    assert "int64" not in text


def test_what_a_group_shares_is_read_once_a_step() -> None:
    """Where a step lies within a group, its scales are one a column, and the host says so; where it does not, they are one an element."""
    within, across = source_of("int4_long_groups", "small"), source_of("int4_groups", "small")
    assert "tl.load(scales_ptr + off_n * n_inner_0 + k_0, mask=mask_n" in within
    assert '% 16 == 0, "a step lies within one group"' in within
    assert "a step lies within one group" not in across


def test_neighbours_in_two_tiles_are_read_together() -> None:
    """Even and odd elements of the left operand come of one wide load."""
    assert source_of("int4_groups", "first").count("tl.load(x_ptr") == 1


def test_products_of_one_operand_share_its_tiles() -> None:
    """Two products of one left operand load it once a step, in one loop."""
    text = source_of("gated", "first")
    assert text.count("tl.load(x_ptr") == 1
    assert text.count("for k in range") == 1


SUMMED_SIDE = reference("return (x + y) @ w", "torch.randn(1024, 1024), torch.randn(1024, 1024), torch.randn(1024, 1024)", "x, y, w")
MIXED_SIDE = reference(
    "return (x + y.float()).half() @ w",
    f"torch.randn(1024, 1024), torch.randn(1024, 1024, {HALF}), torch.randn(1024, 1024, {HALF})",
    "x, y, w",
)
COMPILED: tuple[tuple[str, dict[str, Any], int], ...] = (
    (SUMMED_SIDE, {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32, "num_stages": 3, "precision": "tf32x3"}, 98304),
    (SUMMED_SIDE, {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32, "num_stages": 3, "precision": "ieee"}, 73728),
    (SUMMED_SIDE, {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32, "num_stages": 3, "precision": "tf32"}, 81920),
    (MIXED_SIDE, {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32, "num_stages": 3}, 49152),
    (MIXED_SIDE, {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 3}, 40960),
)
"""References, settings, and the shared memory that Triton 3.6 gave their kernels for sm_90, bytes."""


@pytest.mark.parametrize(("source", "settings", "nbytes"), COMPILED)
def test_shared_memory_counts_each_load_of_a_side(source: str, settings: dict[str, Any], nbytes: int) -> None:
    """Every tensor that an operand is made of is loaded ahead, in its own dtype, and tensor cores may read a tile more."""
    found = whole(source)[0]
    parameters = {**found.defaults(132), "num_warps": 4, **settings}
    assert shared_bytes(found.kernel, parameters, load_sheet("h100")) == nbytes
    (launch,) = found.template.launches(found.kernel, {**parameters, "SPLIT_K": 1}, load_sheet("h100"))
    assert launch.shared_bytes == nbytes


def test_settings_that_need_more_shared_memory_than_there_is_do_not_fit() -> None:
    """Two tensors of one side at 128 by 128 by 64 with three stages need 256 KiB, which no block of an H100 has; with two they fit."""
    found = whole(SUMMED_SIDE)[0]
    wide = {**found.defaults(132), "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "precision": "tf32x3"}
    fits = [found.fits({**wide, "num_stages": stages}, "num_stages", load_sheet("h100")) for stages in (3, 2)]
    assert fits == [False, True]


@pytest.mark.slow
def test_compiled_products_take_the_shared_memory_that_is_counted(tmp_path: Path) -> None:
    """What the compiler gives each kernel for Hopper is what the settings were chosen by."""
    jobs = []
    for place, (source, settings, _) in enumerate(COMPILED):
        found, problem, graph, nodes = whole(source)
        parameters = {**found.defaults(132), "SPLIT_K": 1, "num_warps": 4, **settings}
        schedule = Schedule(regions=(Region(id="r0", nodes=nodes, template="product", parameters=parameters),))
        jobs.append({**write_job(tmp_path, f"shared_{place}", problem, emit(problem, graph, schedule).source), "arch": 90})
    results = run_worker("compile_worker.py", jobs, interpret=False)
    assert [[each["shared"] for each in result["kernels"]] for result in results] == [[nbytes] for _, _, nbytes in COMPILED]
