"""What a launch does whose programs split float32 operands between their products (`tf32x3`): warps prepare them, and wait for each.

The left operand's parts stay in registers. On Hopper the right operand's go back to shared memory along the sum, where asynchronous
products read them; one that lies across it is turned on the way, and its stores meet in the same banks.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.launch import LaunchWork
from tools.hardware import rates
from tools.records import HardwareSheet

WARP = 32
WARP_ROWS = 16
"""Rows of a warp in one asynchronous product."""
SPLIT, CHECKED, STEPPED = 5.75, 3.0, 100.0
"""Instructions of a lane for each element that it splits, for each sum (Triton leaves out what is no number, and adds it up) and for a
step, counted in the machine code of Triton 3.6 for sm_90; the last fitted with the next."""
WAIT_US = 0.3
"""What a program waits in a step for its products and barriers. Fitted with the next and with `PREPARED` in `tools.cost.launch_time` on 111
settings of eleven products on an H100 and an H200 (2026-11-26, triton 3.6), with sums of 32 to 524,288 elements: the root mean square of
ln(modelled / measured) is 0.17, and 0.18 on 44 of matmul_bias_gelu (the H200 landscape, not fitted). Of the 39 that came first it was
0.41 where products went on beside all else at a share of the rate."""
SINGLY = 0.1
"""Cycles for which an element that is fetched by itself keeps shared memory busy; fitted with the others on 165 settings, at 0.21."""
FETCHED_US = {1: 0.7, 2: 0.3}
"""What it waits for operands besides, with so few stages."""
BANKS = 0.5
"""Cycles for which a part of an element that is turned keeps shared memory busy, in a tile of 128 columns: with fewer they meet less."""


@dataclass(frozen=True)
class Tile:
    """A step's tile, as tensor cores see it."""

    rows: int
    """Of the operand that stays in registers."""
    cols: int
    summed: int
    threads: int
    grouped: bool
    """Whether four warps at a time ask for asynchronous products."""
    straight: bool
    """Whether the other operand lies along the sum."""
    singly: bool = False
    """Whether the elements of the one that stays in registers are fetched one at a time, each by a pointer of its own."""


def _each_warps(tile: Tile) -> int:
    """Count the elements that warps make of both operands, each those of its own part of the tile; Triton deals parts out so."""
    down, along = 1, 1
    while down * along < tile.threads // WARP:
        if tile.rows // down >= tile.cols // along:
            down *= 2
        else:
            along *= 2
    return (tile.rows * along + tile.cols * down) * tile.summed


def _exchanged(tile: Tile, parts: float) -> float:
    """Count the cycles for which one step's stores and loads of single elements keep shared memory busy."""
    turning = 0.0 if tile.straight or not tile.grouped else BANKS * parts * tile.cols / 128
    return turning + (SINGLY * tile.rows * tile.summed if tile.singly else 0.0)


def split_on_the_way(launch: LaunchWork, tile: Tile, stages: int, tflops: float, sheet: HardwareSheet) -> LaunchWork:
    """Say what a launch of tiles costs beside its products, which reach `tflops` where nothing waits."""
    # groups of warps that share rows each prepare them
    rows = max(tile.rows, WARP_ROWS * tile.threads // WARP) if tile.grouped else tile.rows
    loaded, sums = (tile.rows + tile.cols) * tile.summed, rows * tile.cols
    made = (rows + tile.cols) * tile.summed if tile.grouped else _each_warps(tile)
    parts = 2 * tile.cols * tile.summed
    held = rows * tile.summed if tile.grouped else loaded
    a_step = made * SPLIT + sums * CHECKED + tile.threads * STEPPED
    return launch._replace(
        lane_work=launch.lane_work + a_step * launch.steps * launch.programs,
        registers=(32 if tile.straight else 40) + 2 * (sums + held + (tile.rows * tile.summed if tile.singly else 0)) / tile.threads,
        shared_bytes=4.0 * (loaded * max(1, stages - 1) + (parts if tile.grouped else 0)),
        exchange_cycles=launch.exchange_cycles + _exchanged(tile, parts),
        product_tflops=tflops * (rates.OLD_TENSOR_SHARE if sheet.generation == "hopper" and not tile.grouped else 1.0),
        wait_us=WAIT_US + FETCHED_US.get(stages, 0.0),
    )
