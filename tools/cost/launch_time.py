"""How long the model expects one launch to take, by what its schedule says it does: `LaunchWork`, before anything is compiled.

The coarse stage of the cost model. A launch takes `KERNEL_US` and the 4-norm of what can limit it, so that the largest term decides
and the others break ties (`JOIN`; a maximum would call schedules equal that are not):

* memory: bytes from DRAM at the copy rate, less where programs do not divide evenly among multiprocessors, or few are held at once;
* start: programs that the device can start in a clock;
* latency: Little's law. Each program has `flight_bytes` on their way at once, `occupancy` says how many programs a multiprocessor holds,
  and a round trip takes `LATENCY_US`, longer by what a step of the program's loop spends in barriers;
* L2: all bytes that leave the L1, partly used sectors whole, at the L2's rate;
* issue: instructions of all lanes, idle ones too, at `ISSUES_PER_CLOCK`;
* exchange: values that warps of one program pass to one another through shared memory in every step, and the lines that loads of
  depthwise convolutions and of poolings by `vec4` look up in the L1, which is the same memory;
* products: at the rate of the units that the tile's shape allows.

Registers are guessed from the tile; beyond what a thread can have they spill, and spills move through the L2.
"""

from __future__ import annotations

import math
from functools import lru_cache

from tools.codegen.ir.launch import LaunchWork
from tools.cost.occupancy import occupancy
from tools.hardware import rates
from tools.records import HardwareSheet, KernelResources

JOIN = 4.0
"""Exponent of the norm that joins the terms; an assumption."""


def launch_time_us(shape: LaunchWork, sheet: HardwareSheet) -> float:
    """Time of one launch on `sheet`, microseconds; infinite where not even one program fits."""
    registers = math.ceil(min(shape.registers, _most_registers(shape, sheet)))
    held = _held(registers, int(shape.shared_bytes), shape.warps, tuple(getattr(sheet, name) for name in _LIMITS))
    if held == 0 or not shape.programs:
        return math.inf
    terms = (
        _memory_us(shape, held, sheet),
        shape.programs / (rates.PROGRAMS_PER_CLOCK * sheet.clock_mhz),
        _latency_us(shape, held, sheet),
        (shape.l2_bytes + _spilled(shape, sheet)) / rates.l2_gbps(sheet) / 1e3,
        shape.lane_work / sheet.warp_size / (sheet.sms * rates.ISSUES_PER_CLOCK * sheet.clock_mhz) * _stretch(shape, sheet),
        shape.exchange_cycles * shape.steps * shape.programs / (sheet.sms * sheet.clock_mhz),
        _product_us(shape, sheet),
    )
    worst = max(terms)
    return float(rates.KERNEL_US + worst * sum((term / worst) ** JOIN for term in terms) ** (1 / JOIN))


@lru_cache(maxsize=8192)
def _held(registers: int, shared: int, warps: int, limits: tuple[object, ...]) -> int:
    """Programs that one multiprocessor holds; `limits` are the sheet's fields, which do not hash together."""
    sheet = HardwareSheet.model_construct(**dict(zip(_LIMITS, limits, strict=True)))  # type: ignore[arg-type]
    kernel = KernelResources(
        name="", arch=sheet.arch, registers=registers, spill_bytes=0, shared_bytes=shared, stack_bytes=0, instructions={}
    )
    return occupancy(kernel, warps, sheet).blocks_per_sm


_LIMITS = ("arch", "backend", "warp_size", "max_threads_per_sm", "registers_per_sm", "shared_kib_per_sm", "shared_kib_per_block")


def _memory_us(shape: LaunchWork, held: int, sheet: HardwareSheet) -> float:
    """DRAM traffic; a multiprocessor that holds few programs asks for nothing while these begin and end."""
    return shape.dram_bytes / rates.copy_gbps(sheet) / 1e3 * _stretch(shape, sheet) * (1 + rates.ALONE / held)


def _latency_us(shape: LaunchWork, held: int, sheet: HardwareSheet) -> float:
    """Rounds of resident programs, each as long as its steps' round trips, plus what a step waits for at barriers."""
    rounds = max(1.0, math.ceil(shape.programs / (held * sheet.sms)))
    trips = shape.dram_bytes / shape.programs / max(shape.flight_bytes, 1.0)
    return rounds * (rates.PROGRAM_US + trips * rates.LATENCY_US + shape.steps * shape.barriers * rates.BARRIER_US)


def _spilled(shape: LaunchWork, sheet: HardwareSheet) -> float:
    """Bytes of registers that do not fit, written and read once a step."""
    beyond = max(0.0, shape.registers - _most_registers(shape, sheet))
    return 2 * 4 * beyond * shape.warps * sheet.warp_size * shape.programs * shape.steps


def _most_registers(shape: LaunchWork, sheet: HardwareSheet) -> float:
    """What a compiler gives a thread at most: one program must fit, in units of 8 registers."""
    return min(float(sheet.max_registers_per_thread), sheet.registers_per_sm / (shape.warps * sheet.warp_size) // 8 * 8)


def _product_us(shape: LaunchWork, sheet: HardwareSheet) -> float:
    if not shape.product_flops:
        return 0.0
    return shape.product_flops / shape.product_tflops / 1e6 * _stretch(shape, sheet)


def _stretch(shape: LaunchWork, sheet: HardwareSheet) -> float:
    """How much longer the busiest multiprocessor works than the average one."""
    return math.ceil(shape.programs / sheet.sms) * sheet.sms / shape.programs
