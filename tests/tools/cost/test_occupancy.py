"""Occupancy against cases worked out elsewhere or by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.makers import resources
from tools.cost.occupancy import occupancy, waves
from tools.hardware import load_sheet, sheet_names
from tools.records import HardwareSheet


@pytest.mark.parametrize(("num_warps", "blocks", "percent"), [(4, 12, 75.0), (10, 4, 62.5)])
def test_the_published_register_example(num_warps: int, blocks: int, percent: float) -> None:
    """CUDA C++ Best Practices Guide, "Calculating Occupancy": 37 registers give 12 blocks of 128 threads (75 %) or 4 of 320 (63 %)."""
    found = occupancy(resources(registers=37), num_warps, load_sheet("a100"))
    assert (found.blocks_per_sm, 100 * found.fraction, found.limiter) == (blocks, percent, "registers")


def test_thirty_two_registers_fill_the_device() -> None:
    """The same guide: with 65,536 registers and 2,048 threads, 32 registers a thread allow full occupancy and 33 do not."""
    sheet = load_sheet("h100")
    assert occupancy(resources(registers=32), 4, sheet).fraction == 1.0
    assert occupancy(resources(registers=33), 4, sheet).fraction < 1.0


@pytest.mark.parametrize(
    ("sheet", "kib", "blocks"),
    [("a100", 48, 3), ("a100", 163, 1), ("h200", 227, 1), ("h200", 113, 2), ("h200", 114, 1), ("h200", 228, 0), ("l40s", 49, 2)],
)
def test_shared_memory_counts_with_the_systems_kilobyte(sheet: str, kib: int, blocks: int) -> None:
    """Tuning guides of Ampere, Ada and Hopper: 164, 100 and 228 KiB a multiprocessor, one more KiB for each block."""
    found = occupancy(resources(registers=32, shared_bytes=kib * 1024), 4, load_sheet(sheet))
    assert (found.blocks_per_sm, found.limiter) == (blocks, "shared memory")


@pytest.mark.parametrize(("sheet", "blocks"), [("a100", 32), ("h200", 32), ("l40s", 24), ("rtx4090", 24)])
def test_small_blocks_run_out_of_block_slots(sheet: str, blocks: int) -> None:
    """CUDA Programming Guide, technical specifications: 32 resident blocks on 8.0 and 9.0, 24 on 8.9."""
    found = occupancy(resources(registers=16), 1, load_sheet(sheet))
    assert (found.blocks_per_sm, found.limiter) == (blocks, "blocks")


@pytest.mark.parametrize(("registers", "waves_per_simd"), [(64, 8), (128, 4), (129, 3), (512, 1)])
def test_amd_registers_follow_llvm(registers: int, waves_per_simd: int) -> None:
    """LLVM, target gfx90a and later: 512 vector registers a SIMD lane in units of 8, at most 8 waves, four SIMDs."""
    assert occupancy(resources(registers=registers), 4, load_sheet("mi300x")).warps_per_sm == 4 * waves_per_simd


@settings(deadline=None)
@given(st.sampled_from(sheet_names()), st.integers(1, 255), st.integers(0, 100 * 1024), st.sampled_from([1, 2, 4, 8, 16]))
def test_more_of_any_resource_never_fits_more(name: str, registers: int, shared_bytes: int, num_warps: int) -> None:
    """Occupancy falls, or stays, as registers and shared memory grow, and never exceeds one."""
    sheet = load_sheet(name)
    found = occupancy(resources(registers, shared_bytes), num_warps, sheet)
    assert 0 <= found.fraction <= 1
    assert occupancy(resources(min(255, registers + 8), shared_bytes), num_warps, sheet).blocks_per_sm <= found.blocks_per_sm
    assert occupancy(resources(registers, shared_bytes + 1024), num_warps, sheet).blocks_per_sm <= found.blocks_per_sm


def test_waves_are_programs_over_places(h200: HardwareSheet) -> None:
    """4224 programs, 16 at once on each of 132 multiprocessors, are two waves; where none fits there are none."""
    assert waves((2112, 2), 16, h200) == 2.0
    assert waves((2112, 2), 0, h200) == 0.0
