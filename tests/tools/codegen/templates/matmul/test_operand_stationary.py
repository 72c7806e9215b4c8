"""Products whose programs hold a tile of one operand and walk the other: right either way round, and offered for short sums."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.compute_samples import DIRECT, PRODUCTS, reference
from tests.tools.codegen.harness import for_targets, made_once, problem_of, run_worker, small, traced_text, unseen, write_job
from tests.tools.codegen.templates.matmul.test_ways import PLAIN, large, offered
from tools.codegen import LoweringError, Region, Schedule, emit
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.matmul.layout import matmul_layout_of
from tools.codegen.templates.matmul.legality import OPERAND_STATIONARY, left_is_stationary, stationary_bytes, stationary_settings

TILE: dict[str, Any] = {**PLAIN, "programs": OPERAND_STATIONARY}
ROUND: dict[str, str] = {
    "columns": reference("x @ y", "torch.randn(ROWS, DIM), torch.randn(DIM, COLS)", "x, y"),
    "rows": reference("F.relu(x @ y - 1) * 2", "torch.randn(COLS, DIM), torch.randn(DIM, ROWS)", "x, y"),
    "columns_k_major": reference(
        "F.gelu(F.linear(x, w, b))", "torch.randn(ROWS, DIM), torch.randn(COLS, DIM), torch.randn(COLS)", "x, w, b"
    ),
    "rows_k_major": reference(
        "F.linear(x, w) + r", "torch.randn(2, COLS, DIM), torch.randn(ROWS, DIM), torch.randn(2, COLS, ROWS)", "x, w, r"
    ),
    "rows_inner_first": reference("x.T @ y", "torch.randn(DIM, COLS), torch.randn(DIM, ROWS)", "x, y"),
    "batch_of_both": PRODUCTS["batched"],
    "batch_of_images": DIRECT["pointwise_volume"],
    "image_and_weight": reference("w @ x", "torch.randn(ROWS, DIM), torch.randn(3, DIM, COLS)", "w, x"),
    "infinite_columns": reference(
        "x @ y",
        "torch.randn(ROWS, DIM).round(), torch.randn(DIM, COLS) / ((torch.arange(DIM)[:, None] != 5) | (torch.arange(COLS) % 9 != 3))",
        "x, y",
    ),
    "infinite_rows": reference(
        "x @ y",
        "torch.randn(COLS, DIM) / ((torch.arange(COLS)[:, None] % 9 != 1) | (torch.arange(DIM) != 2)), torch.randn(DIM, ROWS).round()",
        "x, y",
    ),
    "zero_and_odd_columns": reference(
        "x @ y",
        "torch.randn(ROWS, DIM), torch.randn(DIM, COLS) * torch.tensor([0.0, 1e30, 1e-30, 1.0, float('nan')]).repeat(COLS)[:COLS]",
        "x, y",
    ),
}
"""Products by what is held, and in which order it lies in memory."""
RUN = {name: ROUND[name] for name in unlike(ROUND, {"rows", "rows_k_major", "image_and_weight"})}
"""Without those that run no line of the generator which none of the others runs, but in `make test-all`."""
COMPILED = ("columns", "rows_k_major", "batch_of_images")
COMPILED_FOR = covering([(name, target) for name in COMPILED for target in (90, 100, 80, "gfx942")], also={(name, 90) for name in COMPILED})
"""The orders in memory of `x @ y`, of `F.linear` and of images, and the targets they are compiled for: Hopper's code is looked at."""


@cache
def product(source: str) -> tuple[Any, Any, tuple[str, ...], Planned]:
    """Lower all of a reference as one product."""
    problem, graph = traced_text(source)
    names = tuple(node.name for node in graph.nodes if not is_view(node))
    return problem, graph, names, plan_region(graph, names)


def written(source: str, **parameters: Any) -> str:
    """Write the module of such a product."""
    problem, graph, names, planned = product(source)
    region = Region(id="r0", nodes=names, template=planned.template.name, parameters={**TILE, **parameters})
    return emit(problem, graph, Schedule(regions=(region,))).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every product at sizes it was not traced at, and at its own against the exact policy."""
    return made_once(tmp_path_factory, "operand_stationary", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = [write_job(folder, name, unseen(small(source)), written(source)) for name, source in RUN.items()]
    own = [write_job(folder, f"{name}_own", product(source)[0], written(source)) for name, source in RUN.items()]
    errors, shares = (run_worker(f"{kind}_worker.py", each, interpret=True) for kind, each in (("interpreter", jobs), ("exact", own)))
    longer = [write_job(folder, f"{name}_longer", problem_of(longest(source)), written(source)) for name, source in RUN.items()]
    steps = run_worker("exact_worker.py", longer, interpret=True)
    return {name: {**shares[place], **errors[place], "longer": steps[place]} for place, name in enumerate(RUN)}


def longest(source: str) -> str:
    """Rewrite a reference to sums of 70 elements, where 24 or 8 were written."""
    return (
        source.replace("DIM = 24", "DIM = 70")
        .replace("torch.randn(2, 8, 3, 5, 7)", "torch.randn(2, 70, 3, 5, 7)")
        .replace("return [8]", "return [70]")
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_either_operand_is_held_and_walked(results: Any, name: str) -> None:
    """Whichever operand is held, in whatever order it lies, the product is as exact as the policy asks, at other odd sizes, too."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= 1.0
    assert results[name]["share"] <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_longer_sum_than_as_written_is_taken_in_steps(results: Any, name: str) -> None:
    """Sums three times as long as those that the tile was chosen for are as exact."""
    assert "crash" not in results[name]["longer"], results[name]["longer"]["crash"]
    assert results[name]["longer"]["share"] <= 1.0


@pytest.mark.parametrize(("name", "held"), [("columns", "y"), ("rows", "x"), ("batch_of_images", "x"), ("image_and_weight", "x")])
def test_the_larger_operand_is_read_as_it_is(name: str, held: str) -> None:
    """What is held, the larger operand, has no pass before the product; the other one has."""
    source = written(ROUND[name])
    assert source.count("_exponents = ") == 1
    assert f" = halves({held}," not in source
    assert f" = wide_halves({held}," not in source
    assert f"tl.load({held}_ptr + " in source


def test_a_walk_is_dealt_out_where_little_is_held() -> None:
    """The grid has four programs a multiprocessor or more, as far as there are tiles to walk."""
    assert "grid = (n_held, min(cdiv(n_rows, 16), cdiv(4 * multiprocessors(x), n_held)))" in written(ROUND["columns"])
    assert "grid = (n_held, min(cdiv(n_cols, 32), cdiv(4 * multiprocessors(x), n_held)))" in written(ROUND["rows"])


def wide(source: str) -> str:
    """Rewrite a reference to sums of 40 elements, no multiple of 16."""
    sums = source.replace("DIM = 24", "DIM = 40").replace("COLS = 70", "COLS = 160")
    return sums.replace("torch.randn(2, 8, 3, 5, 7)", "torch.randn(2, 40, 4, 4, 8)").replace("return [8]", "return [40]")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int | str], dict[str, Any]]:
    """Compile the first setting that is tried."""
    return made_once(tmp_path_factory, "operand_stationary_compiled", _compiled)


def _compiled(folder: Path) -> dict[tuple[str, int | str], dict[str, Any]]:
    jobs = {}
    for name in COMPILED:
        source = wide(ROUND[name])
        first = stationary_settings(matmul_layout_of(product(source)[3].kernel))[0]
        jobs[name] = write_job(folder, name, product(source)[0], written(source, **first))
    longer = unseen(wide(ROUND["columns"]).replace("DIM = 40", "DIM = 1021"))
    first = stationary_settings(matmul_layout_of(product(wide(ROUND["columns"]))[3].kernel))[0]
    job = write_job(folder, "longer", longer, written(wide(ROUND["columns"]), **first))
    return for_targets({**jobs, "longer": job}, [*COMPILED_FOR, ("longer", 90)])


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_operand_stationary_products_compile(compiled: Any, name: str) -> None:
    """They compile for every target; on Hopper walked tiles come ahead of their products, 16 bytes a copy however long the sum is."""
    found = {target: result for (job, target), result in compiled.items() if job == name}
    assert {target: result["crash"] for target, result in found.items() if "crash" in result} == {}
    kernel = found[90]["kernels"][-1]
    assert "wgmma.mma_async" in kernel["ptx"]
    assert kernel["ttgir"].count("async_copy_global_to_local") > 2
    assert "cp.async.cg.shared.global" in kernel["ptx"]
    if name == "columns":
        layout = matmul_layout_of(product(wide(ROUND[name]))[3].kernel)
        assert kernel["shared"] == stationary_bytes(layout, stationary_settings(layout)[0])


@pytest.mark.slow
def test_a_longer_sum_than_as_written_fits(compiled: Any) -> None:
    """A sum of 1021 elements, where 40 were written, is taken in steps of as many as were written, and fits as they do."""
    found = compiled["longer", 90]
    assert "crash" not in found, found["crash"]
    assert found["kernels"][-1]["shared"] <= 227 * 1024


FIRST = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 4, "num_stages": 3}


def test_operand_stationary_products_are_offered_for_short_sums() -> None:
    """Sums of at most 128 elements are offered with the tiles that were fast, in one step; longer ones and other tiles are not."""
    assert ("programs", OPERAND_STATIONARY) in offered(large(4096, 64, 8192), "h200", **FIRST)
    assert ("programs", OPERAND_STATIONARY) in offered(large(4096, 33, 8192), "h200", **FIRST)
    assert ("programs", OPERAND_STATIONARY) not in offered(large(4096, 65, 8192), "h200", **FIRST)
    assert ("programs", OPERAND_STATIONARY) not in offered(large(4096, 129, 8192), "h200", **{**FIRST, "BLOCK_K": 128})
    assert ("programs", OPERAND_STATIONARY) not in offered(large(4096, 64, 8192), "h200", **{**FIRST, "BLOCK_M": 32})
    assert ("programs", OPERAND_STATIONARY) not in offered(large(4096, 64, 8192), "h200", **{**FIRST, "precision": "tf32x3"})


def test_operand_stationary_products_are_offered_where_they_fit() -> None:
    """Three stages of 128 walked vectors of 128 elements do not fit into a Hopper's shared memory; two do."""
    wide = {**FIRST, "BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 128}
    assert ("programs", OPERAND_STATIONARY) not in offered(large(4096, 128, 8192), "h200", **wide)
    assert ("programs", OPERAND_STATIONARY) in offered(large(4096, 128, 8192), "h200", **{**wide, "num_stages": 2})


def test_tiles_are_laid_along_what_is_held() -> None:
    """Of two matrices alike the right one is held; the wider side of the first tile lies along what is held."""
    few, many = (matmul_layout_of(product(large(*sizes))[3].kernel) for sizes in ((64, 32, 4096), (4096, 32, 64)))
    assert (left_is_stationary(few), left_is_stationary(many)) == (False, True)
    assert [stationary_settings(layout)[0]["BLOCK_N"] for layout in (few, many)] == [128, 64]


@pytest.mark.parametrize("changes", [{"precision": "tf32x3"}, {"loads": "descriptors"}, {"SPLIT_K": 2}])
def test_what_cannot_be_held_is_refused(changes: dict[str, Any]) -> None:
    """Other precisions, descriptors and shared sums are refused with the reason."""
    with pytest.raises(LoweringError, match="programs=operand_stationary is for fp16x3"):
        written(ROUND["columns"], **changes)
