"""Products by short parts, by other programs and by descriptors: as exact as the policy asks, and offered where they can be."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering
from tests.tools.codegen.compute_samples import PRODUCTS, reference
from tests.tools.codegen.harness import made_once, run_worker, write_job
from tests.tools.codegen.templates.matmul.test_products import TILES, whole
from tools.codegen import LoweringError, Schedule, emit, options
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

PLAIN: dict[str, Any] = {
    **TILES,
    "precision": "fp16x3",
    "accumulate": "chunked",
    "programs": "data_parallel",
    "loads": "pointers",
}
TILED = {"loads": "descriptors"}
WAYS: dict[str, dict[str, Any]] = {
    "halves": {"precision": "fp16x3"},
    "split": {"precision": "tf32x3"},
    "thirds": {"precision": "bf16x6"},
    "thirds_of_splits": {"precision": "bf16x6", "SPLIT_K": 4},
    "persistent": {"precision": "bf16x6", "programs": "persistent"},
    "streamed": {"precision": "fp16x3", "programs": "stream_k"},
    "operand_stationary": {"precision": "fp16x3", "programs": "operand_stationary"},
    "described": {"precision": "tf32x3", **TILED},
    "described_walk": {"precision": "fp16x3", "programs": "persistent", **TILED},
    "described_stream": {"precision": "bf16x6", "programs": "stream_k", **TILED},
}
PROGRAMS = ("persistent", "streamed", "thirds_of_splits", "operand_stationary", "described", "described_walk", "described_stream")
WALKED = ("plain", "turned", "batched", "shared_right", "lower_triangle", "beside_channels")
"""Products that other programs and descriptors compute; the last is added to where its rows are several dimensions apart."""
HARD = ("halves", "split", "thirds", "thirds_of_splits", "streamed", "operand_stationary", "described_stream")
"""Those that sum in ways of their own."""
ADVERSARIAL: dict[str, str] = {
    "wide_range": reference("x @ y", "torch.randn(ROWS, COLS) ** 9 * 1e18, torch.randn(COLS, DIM) ** 9 * 1e-30", "x, y"),
    "smallest": reference("x @ y", "torch.randn(ROWS, COLS) * 1e30, torch.randn(COLS, DIM) * 1e-37", "x, y"),
    "largest": reference("x @ y", "torch.rand(ROWS, COLS) * 3.4e38, torch.randn(COLS, DIM) * 1e-3", "x, y"),
    "long_sum": reference("x @ y", "torch.rand(ROWS, 2051), torch.rand(2051, DIM)", "x, y"),
    "cancelling": reference(
        "x @ y",
        "torch.randn(ROWS, COLS).repeat(1, 2) * torch.tensor([1.0, -1.0]).repeat_interleave(COLS), "
        "torch.randn(COLS, DIM).repeat(2, 1) * (1 + 1e-4 * torch.randn(2 * COLS, DIM))",
        "x, y",
    ),
    "infinities": reference(
        "x @ y",
        "torch.randn(ROWS, COLS).round() / ((torch.arange(ROWS)[:, None] != 1) | (torch.arange(COLS) != 2)), "
        "torch.randn(COLS, DIM) / ((torch.arange(COLS)[:, None] != 5) | (torch.arange(DIM) != 3))",
        "x, y",
    ),
    "both_infinite": reference(
        "x @ y",
        "torch.ones(ROWS, COLS) / ((torch.arange(ROWS)[:, None] != 1) | (torch.arange(COLS) != 2)), "
        "-torch.ones(COLS, DIM) / ((torch.arange(COLS)[:, None] != 2) | (torch.arange(DIM) != 3))",
        "x, y",
    ),
}
"""Inputs that are hard for sums of short products."""
HARD_CASES = covering([(name, way) for name in ADVERSARIAL for way in HARD])
WALKS = covering(
    [(name, way) for name in WALKED for way in PROGRAMS],
    also={("batched", "persistent"), ("beside_channels", "streamed"), ("beside_channels", "thirds_of_splits")},
)
WIDE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8}
ARCHES = {90: 64, 100: 64, 80: 64, "gfx942": 32}
"""Targets, and rows and columns of the tiles compiled for them."""
COMPILED = covering(
    [(way, arch) for arch in ARCHES for way in WAYS if arch != "gfx942" or way not in ("split", "described")],
    also={("described_walk", 90)},
)


def sized(source: str) -> str:
    """Rewrite a reference to odd sizes with eight tiles, more than the interpreter's three programs can share evenly."""
    return source.replace("ROWS = 33", "ROWS = 53").replace("COLS = 70", "COLS = 149").replace("DIM = 24", "DIM = 39")


@cache
def traced(source: str) -> tuple[Any, Any, Schedule]:
    """Trace a reference once."""
    return whole(source, PLAIN)


def scheduled(source: str, **changes: Any) -> tuple[Any, Any, Schedule]:
    """Generate all of a reference as one product with these parameters."""
    problem, graph, schedule = traced(source)
    region = schedule.regions[0].model_copy(update={"parameters": {**PLAIN, **changes}})
    return problem, graph, schedule.replaced(region)


def emitted(source: str, **changes: Any) -> tuple[Any, str]:
    """Write the source of such a product."""
    problem, graph, schedule = scheduled(source, **changes)
    return problem, emit(problem, graph, schedule).source


@pytest.fixture(scope="session")
def shares(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run ways on hard inputs, and hold their errors against the exact policy."""
    return made_once(tmp_path_factory, "ways", _shares)


def _shares(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    chosen = [*HARD_CASES, ("wide_range", "two_parts")]
    jobs = []
    for name, way in chosen:
        steps = {"BLOCK_K": 128 if name == "long_sum" else 32}
        problem, source = emitted(sized(ADVERSARIAL[name]), **WAYS.get(way, {"precision": "bf16x3"}), **steps)
        jobs.append(write_job(folder, f"{name}_{way}", problem, source))
    return dict(zip(chosen, run_worker("exact_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way"), HARD_CASES)
def test_hard_inputs_stay_within_the_exact_policy(shares: Any, name: str, way: str) -> None:
    """Every way of multiplying meets the exact policy's limits, and gives infinities and NaNs where the reference does."""
    assert "crash" not in shares[name, way], shares[name, way]["crash"]
    assert shares[name, way]["share"] <= 1.0


@pytest.mark.slow
def test_two_bfloat16_parts_are_not_exact(shares: Any) -> None:
    """Three products of two bfloat16 parts miss the exact policy's limits: they are for policies that round."""
    assert shares["wide_range", "two_parts"]["share"] > 1.0


def precisions(policy: PrecisionPolicy) -> set[object]:
    """List the precisions that the options of a product offer under a policy."""
    _, graph, schedule = scheduled(large(512, 512, 512), **WIDE, precision="tf32x3")
    return {action.parameters.get("precision") for action in options(graph, schedule, load_sheet("h200"), policy)}


def test_two_bfloat16_parts_are_offered_where_rounding_is() -> None:
    """Options name three bfloat16 parts under every policy, two of them only where operands may be rounded."""
    exact, rounded = precisions(PrecisionPolicy()), precisions(PrecisionPolicy(name="tf32"))
    assert "bf16x6" in exact
    assert "bf16x3" not in exact
    assert {"bf16x3", "bf16x6"} <= rounded


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run products by every other program and by descriptors, where there is such a way for their shape."""
    return made_once(tmp_path_factory, "walked", _walked)


def _walked(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = {}
    for name, way in WALKS:
        with suppress(LoweringError):
            jobs[name, way] = write_job(folder, f"{name}_{way}", *emitted(sized(PRODUCTS[name]), **WAYS[way]))
    return dict(zip(jobs, run_worker("interpreter_worker.py", list(jobs.values()), interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", WALKED)
def test_programs_and_descriptors_compute_the_same_products(walked: Any, name: str) -> None:
    """Other programs and descriptors give the digits of a tile a program with pointers, whatever shape a product has."""
    found = {way: walked[name, way] for way in PROGRAMS if (name, way) in walked}
    assert found
    assert name == "batched" or len(found) == sum(each == name for each, _ in WALKS)
    for way, result in found.items():
        assert "crash" not in result, (way, result["crash"])
        assert result["error"] <= 1.0, way


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int | str], dict[str, Any]]:
    """Compile ways for targets that have their precision, in one process."""
    return made_once(tmp_path_factory, "product_ways_compiled", _compiled)


def _compiled(folder: Path) -> dict[tuple[str, int | str], dict[str, Any]]:
    source = sized(PRODUCTS["plain"]).replace("COLS = 149", "COLS = 256")
    jobs = []
    for way, arch in COMPILED:
        problem, text = emitted(source, **WAYS[way], BLOCK_M=ARCHES[arch], BLOCK_N=ARCHES[arch], BLOCK_K=32)
        jobs.append({**write_job(folder, f"{way}_{arch}", problem, text), "arch": arch})
    return dict(zip(COMPILED, run_worker("compile_worker.py", jobs, interpret=False), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHES)
def test_ways_compile(compiled: Any, arch: int | str) -> None:
    """Ways compile for targets that have their precision; Hopper fetches by descriptor ahead of products, in a walk, too."""
    found = {way: result for (way, target), result in compiled.items() if target == arch}
    assert set(found) == {way for way, target in COMPILED if target == arch} != set()
    assert {way: result["crash"] for way, result in found.items() if "crash" in result} == {}
    if arch == 90:
        walk = found["described_walk"]["kernels"][-1]["ptx"]
        # the four tiles of a step: of the first before the loop, of each next one while the products of the one ahead are made
        assert walk.count("cp.async.bulk.tensor.2d") == 4 * 2
        assert "wgmma.mma_async" in walk


def offered(source: str, sheet: str, **changes: Any) -> set[tuple[str, object]]:
    """List what options can change in a product's programs and loads."""
    _, graph, schedule = scheduled(source, **changes)
    found = (item for action in options(graph, schedule, load_sheet(sheet)) for item in action.parameters.items())
    return {(name, value) for name, value in found if name in ("programs", "loads")}


def large(rows: int, inner: int, cols: int) -> str:
    """A product of these sizes."""
    return (
        PRODUCTS["plain"]
        .replace("ROWS = 33", f"ROWS = {rows}")
        .replace("COLS = 70", f"COLS = {inner}")
        .replace("DIM = 24", f"DIM = {cols}")
    )


def test_descriptors_are_offered_where_the_hardware_and_the_rows_allow() -> None:
    """Tiles are fetched by descriptor on Hopper and Blackwell, where every row of both operands begins at 16 bytes."""
    assert ("loads", "descriptors") in offered(large(4096, 4096, 4096), "h200", **WIDE)
    assert ("loads", "descriptors") in offered(large(4096, 4096, 4096), "b200", **WIDE)
    assert ("loads", "descriptors") not in offered(large(4096, 4096, 4096), "a100", **WIDE)
    assert ("loads", "descriptors") not in offered(large(4096, 4100, 4096), "h200", **WIDE)


def test_a_walk_by_descriptors_is_not_offered() -> None:
    """Tiles that a program walks are not fetched by descriptor, nor does a program walk what is."""
    assert ("loads", "descriptors") not in offered(large(4096, 4096, 4096), "h200", **WIDE, programs="persistent")
    assert ("programs", "persistent") not in offered(large(4096, 4096, 4096), "h200", **WIDE, **TILED)
    assert ("programs", "persistent") in offered(large(4096, 4096, 4096), "h200", **WIDE)


def test_streams_are_offered_where_the_last_round_is_not_full() -> None:
    """144 tiles for 132 multiprocessors are shared out; 1024 are not, nor 144 whose sums a program has begun to share."""
    assert ("programs", "stream_k") in offered(large(1536, 4096, 1536), "h200", **WIDE)
    assert ("programs", "stream_k") not in offered(large(4096, 4096, 8192), "h200", **WIDE)
    assert not any(name == "programs" for name, _ in offered(large(1536, 4096, 1536), "h200", **WIDE, SPLIT_K=2))


def test_programs_of_their_own_refuse_a_split_sum() -> None:
    """A schedule with both SPLIT_K and persistent programs is refused with the reason."""
    with pytest.raises(LoweringError, match="SPLIT_K"):
        emitted(PRODUCTS["plain"], precision="fp16x3", programs="persistent", SPLIT_K=2)
