"""The time model: it agrees with what was measured on an H200 within a stated factor, and every lever moves it the right way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.makers import launch, problem, resources
from tests.tools.conftest import Read
from tools.cost.estimate import MODEL, estimate_reference, estimate_time, launch_costs
from tools.hardware import load_sheet
from tools.hardware.rates import GENERATED_HOST_US, HEAD_START_US
from tools.records import HardwareSheet, KernelResources, Launch, OperatorFamily, Problem

ROW = (65_536, 1024)
STREAM = problem((ROW,), ROW)
H200 = load_sheet("h200")


def us(launches: tuple[Launch, ...], *kernels: KernelResources, of: Problem = STREAM) -> float:
    """Estimated microseconds of these launches on an H200."""
    return estimate_time(of, launches, kernels, H200).candidate_us


@pytest.mark.parametrize(
    ("operator", "family", "size", "measured_us"),
    [
        ("aten.relu.default", OperatorFamily.POINTWISE, 1_610_612_736, 3043.9),
        ("aten.softmax.int", OperatorFamily.SOFTMAX, 1_610_612_736, 6114.8),
        ("aten.cumsum.default", OperatorFamily.SCAN, 1_073_741_824, 4559.7),
    ],
)
def test_eager_estimates_agree_with_measurements(operator: str, family: OperatorFamily, size: int, measured_us: float) -> None:
    """Eager relu, softmax and cumsum of KernelBench level 1, measured on an H200 with torch 2.11 on 2026-11-20, within 5 %."""
    found = estimate_reference(problem(((size,),), (size,), operators=(operator,), families=(family,)), H200)
    assert found.candidate_us == found.eager_us == pytest.approx(measured_us, rel=0.05)


@pytest.mark.parametrize(("policy", "measured_us"), [("exact", 2683.3), ("tf32", 360.0)])
def test_eager_products_agree_with_measurements(policy: str, measured_us: float) -> None:
    """The 4096³ float32 product measured on the same H200, in full float32 and in TF32, within 10 %."""
    product = problem(
        ((4096, 4096), (4096, 4096)),
        (4096, 4096),
        operators=("aten.mm.default",),
        matmul_flops=2 * 4096**3,
        policy=policy,  # type: ignore[arg-type]
    )
    assert estimate_reference(product, H200).eager_us == pytest.approx(measured_us, rel=0.10)


def test_an_estimate_says_what_it_is(h200: HardwareSheet) -> None:
    """It names its target and its model, and stays above the roofline floor."""
    found = estimate_time(STREAM, (launch(ROW, ROW, grid=65_536),), (resources(),), h200)
    assert (found.target, found.model) == ("h200", MODEL)
    assert found.candidate_us > found.floor_us


def test_fusion_is_faster() -> None:
    """One launch that moves each tensor once beats two with an intermediate between them."""
    fused = us((launch(ROW, ROW, grid=65_536),), resources())
    split = us((launch(ROW, ROW, grid=65_536), launch(ROW, ROW, grid=65_536)), resources())
    assert split > 1.5 * fused


def test_an_intermediate_that_fits_the_l2_costs_less() -> None:
    """The second of two launches is cheaper where the first one's output is small enough to stay in the L2."""
    small = (2048, 1024)
    one, two = launch_costs(problem((small,), small), (launch(small, small), launch(small, small)), (resources(),), H200)
    assert two.memory_us < one.memory_us
    large = launch_costs(STREAM, (launch(ROW, ROW), launch(ROW, ROW)), (resources(),), H200)
    assert large[0].memory_us == large[1].memory_us


def test_launches_cost_even_where_nothing_moves() -> None:
    """A hundred empty launches take the host's time, less its head start; one takes what events read of a small kernel, 4.3 µs."""
    tiny, of = launch((4,), (4,), grid=1), problem(((4,),), (4,))
    assert us((tiny,), resources(), of=of) == pytest.approx(4.3)
    assert us((tiny,) * 100, resources(), of=of) == pytest.approx(100 * GENERATED_HOST_US - HEAD_START_US, rel=0.01)


def test_a_graphs_launches_count_each_time_but_the_host_issues_one() -> None:
    """A thousand launches that a graph holds take the device's time a thousand times, and none of the host's."""
    tiny, of = launch((4,), (4,), grid=1), problem(((4,),), (4,))
    replayed = us((tiny.model_copy(update={"replayed": 1000}),), resources(), of=of)
    assert 500 * H200.launch_us < replayed < us((tiny,) * 1000, resources(), of=of) / 5


def test_wide_accesses_beat_narrow_ones(read: Read) -> None:
    """The same vector sum, compiled by Triton with and without aligned pointers: 16 bytes at a time win over 4."""
    operands = (launch(ROW, ROW, ROW, name="add", grid=65_536),)
    assert us(operands, read("add_sm90")) < us(operands, read("add_unaligned_sm90"))


def test_spills_cost(read: Read) -> None:
    """A softmax whose rows spill is slower than the same code without its spills."""
    spilling = read("softmax_spilling_sm90")
    clean = spilling.model_copy(update={"spill_bytes": 0})
    rows = (launch((8192, 8192), (8192, 8192), name="softmax", grid=8192, num_warps=1),)
    assert us(rows, spilling) > 1.1 * us(rows, clean)


def test_tensor_cores_beat_ordinary_ones(read: Read) -> None:
    """The same product is faster with tensor instructions than with multiply-adds, under a policy that allows either."""
    size = (4096, 4096)
    product = problem((size, size), size, operators=("aten.mm.default",), matmul_flops=2 * 4096**3, policy="tf32")
    tiles = (launch(size, size, size, name="matmul", grid=4096, BLOCK_M=64, BLOCK_N=64),)
    assert us(tiles, read("matmul_tensor_sm90"), of=product) < us(tiles, read("matmul_ordinary_sm90"), of=product)


def test_larger_tiles_read_less_again(read: Read) -> None:
    """A product's tiles of 128 read half as much through the L2 as tiles of 64."""
    size = (4096, 4096)
    product = problem((size, size), size, operators=("aten.mm.default",), matmul_flops=2 * 4096**3, policy="tf32")
    kernel = read("matmul_tensor_sm90")
    small, large = (
        launch_costs(product, (launch(size, size, size, name="matmul", grid=g, BLOCK_M=b, BLOCK_N=b),), (kernel,), H200)[0]
        for b, g in ((64, 4096), (128, 1024))
    )
    assert large.memory_us < small.memory_us


def test_few_programs_cannot_use_the_memory() -> None:
    """Eight programs draw far less than the whole device's bandwidth."""
    assert us((launch(ROW, ROW, grid=8),), resources()) > 5 * us((launch(ROW, ROW, grid=65_536),), resources())


def test_flops_go_to_the_launch_that_does_the_product(read: Read) -> None:
    """Beside a library's product, a pointwise epilogue gets none of the flops."""
    size = (1024, 1024)
    both = (launch(size, size, size, name="aten.mm.default", kind="library"), launch(size, size, name="add", grid=1024))
    costs = launch_costs(problem((size, size), size, matmul_flops=2 * 1024**3), both, (read("add_sm90"),), H200)
    assert [cost.work.flops for cost in costs] == [2 * 1024**3, 0]


@settings(deadline=None)
@given(st.integers(16, 255), st.integers(0, 200 * 1024), st.sampled_from([1, 2, 4, 8, 16]))
def test_more_registers_or_shared_memory_never_help(registers: int, shared_bytes: int, num_warps: int) -> None:
    """With one load in flight and waves without number (the last one's size is luck), lower occupancy is never faster."""
    lean = resources(registers, shared_bytes, load=1)
    work = (launch(ROW, ROW, grid=10_000_000, num_warps=num_warps),)
    assert us(work, resources(registers, shared_bytes + 8192, load=1)) >= 0.999 * us(work, lean)
    assert us(work, resources(min(registers + 32, 255), shared_bytes, load=1)) >= 0.999 * us(work, lean)


def test_low_occupancy_with_little_in_flight_is_slow() -> None:
    """One block of four warps a multiprocessor with one 4-byte load a thread in flight reaches a fraction of the bandwidth."""
    work = (launch(ROW, ROW, grid=65_536),)
    held = resources(shared_bytes=200 * 1024, load=1, store=1, load_bytes_max=4)
    free = resources(load=1, store=1, load_bytes_max=4)
    assert us(work, held) > 5 * us(work, free)


@settings(deadline=None)
@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 100_000))
def test_more_bytes_never_take_less_time(rows: int, more: int, grid: int) -> None:
    """A launch that moves more is never estimated to be faster."""
    small = us((launch((rows, 1024), (rows, 1024), grid=grid),), resources())
    assert us((launch((rows + more, 1024), (rows + more, 1024), grid=grid),), resources()) >= small


@settings(deadline=None)
@given(st.integers(0, 4096))
def test_spills_never_help(spill_bytes: int) -> None:
    """More spilled bytes never make a launch faster."""
    work = (launch(ROW, ROW, grid=65_536),)
    assert us(work, resources(spill_bytes=spill_bytes + 64)) > us(work, resources(spill_bytes=spill_bytes))


@settings(deadline=None)
@given(st.sampled_from([1, 2, 4, 8]))
def test_a_wider_access_never_hurts(width: int) -> None:
    """The same bytes in accesses of twice the width, and half as many of them, never take longer."""
    narrow = resources(load=32 // width, load_bytes_max=width)
    wide = resources(load=16 // width, load_bytes_max=2 * width)
    work = (launch(ROW, ROW, grid=65_536),)
    assert us(work, wide) <= us(work, narrow)


def test_a_kernel_whose_code_was_not_read_is_still_estimated() -> None:
    """Without machine code (AMD, a failed tool) bytes and launches alone give the time."""
    assert us((launch(ROW, ROW, grid=65_536),)) == pytest.approx(us((launch(ROW, ROW, grid=65_536),), resources()), rel=0.05)


def test_every_sheet_can_be_estimated() -> None:
    """The model runs on every device that has a sheet, AMD's included."""
    times = {
        name: estimate_time(STREAM, (launch(ROW, ROW, grid=65_536),), (), load_sheet(name)).candidate_us
        for name in ("a100", "b200", "mi300x")
    }
    assert times["b200"] < times["mi300x"] < times["a100"]


def test_the_arithmetic_of_a_loop_counts_as_often_as_its_loads() -> None:
    """Of two kernels that loop over the same bytes the one with a third less arithmetic is expected to take less time."""
    rows, loop = launch((1056, 1 << 16), (1056, 1 << 16), grid=1056), {"load": 1, "store": 1, "integer": 10, "control": 2, "other": 2}
    full, less = (us((rows,), resources(name="kernel", fp=count, **loop)) for count in (600, 400))
    assert less < 0.75 * full
    short = launch((1056, 512), (1056, 512), grid=1056)
    assert us((short,), resources(fp=300, **loop)) < full / 50


def test_what_the_copy_engine_moves_says_nothing_of_passes() -> None:
    """One load of the copy engine moves a tile, so bytes over loads are no passes: the arithmetic counts once."""
    rows = launch((1056, 1 << 16), (1056, 1 << 16), grid=1056)
    assert us((rows,), resources(fp=300, load=1, store=1, bulk=1)) < us((rows,), resources(fp=300, load=1, store=1))
