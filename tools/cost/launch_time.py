"""How long the model expects one launch to take, by what its schedule says it does: `LaunchWork`, before anything is compiled.

The coarse stage of the cost model. A launch takes `KERNEL_US` and the 4-norm of what can limit it, so that the largest term decides
and the others break ties (`JOIN`; a maximum would call schedules equal that are not). Few warps that walk cannot work while others
wait: the fewer a multiprocessor has, the nearer the norm is to the sum (`OVERLAPPING`); products load ahead. The terms:

* memory: bytes from DRAM at the copy rate, less where programs do not divide evenly among multiprocessors, or few are held at once;
* start: programs that the device can start in a clock;
* latency: Little's law. Each program has `flight_bytes` on their way at once, `occupancy` says how many programs a multiprocessor holds,
  and a round trip takes `LATENCY_US`, longer by what a step of the program's loop spends in barriers;
* L2: all bytes that leave the L1, partly used sectors whole, at the L2's rate, then what is added to one line, one after the other;
* issue: instructions of all lanes, idle ones too, at `ISSUES_PER_CLOCK`;
* chain: rounds of programs again, each as long as one of its warps takes by itself, instruction after instruction;
* exchange: values that warps of one program pass to one another through shared memory in every step, and what loads of tiles, of
  depthwise convolutions and of poolings by `vec4` cost the L1, which is the same memory: few programs have that of few multiprocessors;
* products: at the rate of the units that the tile's shape allows, then what follows a tile's products, while these units are idle.

Registers are guessed from the tile; beyond what a thread can have they spill, and spills move through the L2.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import attrgetter

from tools.codegen.ir.launch import LaunchWork
from tools.cost.occupancy import occupancy
from tools.hardware import rates
from tools.records import HardwareSheet, KernelResources

JOIN = 4.0
"""Exponent of the norm that joins the terms; an assumption."""
ALONE_JOIN, SHARED_JOIN = 2.3, 3.0
"""The same of `serial` programs, of which a multiprocessor has one or several: fitted with the work of convolutions of halves."""
LONE_JOIN, LONE_WARPS = 1.7, 4
"""The same where so few warps are all that a multiprocessor has: four slices of 32 channels with three stages, one program of four warps at
a time, took 200 µs, with two stages and two programs 154 (an H100, 2026-11-26), which were modelled 208 and 193."""
OVERLAPPING = 24
"""Warps of a multiprocessor from which on terms overlap. On the 18 tables of the H200 (benchmarks/kernels/sweeps and benchmarks/search) the
mean rank correlation is 0.763 with it and 0.758 without; on an H100 (2026-11-26) two passes over 256 long rows took 339 µs with 4 warps a
row and 199 with 16 (sampling/gumbel_choice of the wild suite), which were modelled alike."""

SPILL_CLOCKS = 30.0
"""Clocks of a warp in such a chain for a register that is written to or read from the L1 because it does not fit: about a round trip. With
it tiles of 128 by 64 by 64 and four warps, whose threads lack about 40 registers, are modelled at 0.7 of measured; at 0.6 without."""
PREPARED = 0.5
"""What is left of a program's start, its first loads and its end, where its warps prepare operands: other programs go on meanwhile. Fitted
with `WAIT_US` in tools/codegen/templates/shared/split_on_the_way.py."""


def launch_time_us(work: LaunchWork, sheet: HardwareSheet) -> float:
    """Time of one launch on `sheet`, microseconds; infinite where not even one program fits."""
    registers = math.ceil(min(work.registers, _most_registers(work, sheet)))
    held = _held(registers, int(work.shared_bytes), work.warps, _limits(sheet))
    if held == 0 or not work.programs:
        return math.inf
    terms = (
        _memory_us(work, held, sheet),
        work.programs / (rates.PROGRAMS_PER_CLOCK * sheet.clock_mhz),
        _latency_us(work, held, sheet),
        _l2_us(work, sheet) + _additions_us(work),
        work.lane_work / sheet.warp_size / (sheet.sms * rates.ISSUES_PER_CLOCK * sheet.clock_mhz) * _stretch(work, sheet),
        work.exchange_cycles * work.steps * math.ceil(work.programs / sheet.sms) / sheet.clock_mhz,
        _product_us(work, sheet) + _tail_us(work, held, sheet),
        _chained_us(work, held, sheet),
    )
    worst, join = max(terms), _join(work, held, sheet)
    return float(rates.KERNEL_US - work.early_us + worst * sum([(term / worst) ** join for term in terms]) ** (1 / join))


def _join(work: LaunchWork, held: int, sheet: HardwareSheet) -> float:
    """Exponent of the norm by the warps that a multiprocessor has at a time."""
    if work.serial:
        return LONE_JOIN if held * work.warps <= LONE_WARPS else ALONE_JOIN if held == 1 else SHARED_JOIN
    if (work.product_flops and work.ahead) or work.steps <= 1:
        return JOIN
    warps = min(held, math.ceil(work.programs / sheet.sms)) * work.warps
    return 1.0 + (JOIN - 1.0) * min(1.0, warps / OVERLAPPING)


@lru_cache(maxsize=8192)
def _held(registers: int, shared: int, warps: int, limits: tuple[object, ...]) -> int:
    """Programs that one multiprocessor holds; `limits` are the sheet's fields, which do not hash together."""
    sheet = HardwareSheet.model_construct(**dict(zip(_LIMITS, limits, strict=True)))  # type: ignore[arg-type]
    kernel = KernelResources(
        name="", arch=sheet.arch, registers=registers, spill_bytes=0, shared_bytes=shared, stack_bytes=0, instructions={}
    )
    return occupancy(kernel, warps, sheet).blocks_per_sm


_LIMITS = ("arch", "backend", "warp_size", "max_threads_per_sm", "registers_per_sm", "shared_kib_per_sm", "shared_kib_per_block")
_limits = attrgetter(*_LIMITS)


def _memory_us(work: LaunchWork, held: int, sheet: HardwareSheet) -> float:
    """DRAM traffic; a multiprocessor that holds few programs asks for nothing while these begin and end.

    Few multiprocessors take more than their share of the bandwidth, as much as each can.
    """
    gbps = rates.copy_gbps(sheet)
    alone = gbps / (rates.SM_BYTES_PER_CLOCK * sheet.clock_mhz / 1e3) / work.programs
    stretch = min(_stretch(work, sheet), max(1.0, alone)) if work.programs < sheet.sms else _stretch(work, sheet)
    return work.dram_bytes / gbps / 1e3 * stretch * (1 + rates.ALONE / held)


def _l2_us(work: LaunchWork, sheet: HardwareSheet) -> float:
    """What leaves the L1 at the L2's rate, of which a multiprocessor has its part: programs with products are few and ask for much."""
    busiest = _stretch(work, sheet) if work.product_flops else 1.0
    return (work.l2_bytes * busiest + _spilled(work, sheet)) / rates.l2_gbps(sheet) / 1e3


def _latency_us(work: LaunchWork, held: int, sheet: HardwareSheet) -> float:
    """Rounds of resident programs, each as long as its steps' round trips, plus what a step waits for at barriers."""
    rounds = max(1.0, math.ceil(work.programs / (held * sheet.sms)))
    # a step of a product's loop waits for both operands, wherever they are
    loaded = work.l2_bytes if work.product_flops else work.dram_bytes
    trips = loaded / work.programs / max(work.flight_bytes, 1.0)
    return rounds * (rates.PROGRAM_US + trips * rates.LATENCY_US + work.steps * work.barriers * rates.BARRIER_US)


def _chained_us(work: LaunchWork, held: int, sheet: HardwareSheet) -> float:
    """Rounds of resident programs, each as long as one of its warps takes by itself.

    Products keep their units busy, but for those whose operands warps prepare between them: there all that a program does is one chain.
    """
    if work.product_flops and not work.wait_us:
        return 0.0
    rounds = max(1.0, math.ceil(work.programs / (held * sheet.sms)))
    instructions = work.lane_work / work.programs / work.warps / sheet.warp_size
    alone = instructions * max(rates.FEWEST_CLOCKS, rates.CHAINED_CLOCKS / work.independent) / sheet.clock_mhz
    if not work.product_flops:
        return rounds * (alone + work.steps * rates.STEP_US)
    products = work.product_flops / work.programs / work.product_tflops * sheet.sms / 1e6
    exchanged = work.exchange_cycles * work.steps / sheet.clock_mhz
    spilled = 2 * max(0.0, work.registers - _most_registers(work, sheet)) * SPILL_CLOCKS * work.steps / sheet.clock_mhz
    return rounds * (alone + products + exchanged + spilled + work.steps * work.wait_us) + PREPARED * _latency_us(work, held, sheet)


def _tail_us(work: LaunchWork, held: int, sheet: HardwareSheet) -> float:
    """Rounds of what follows a tile's products, whose units are idle while a warp goes through it.

    An exact GELU after 3152 by 1024 by 4096 in bfloat16 cost 19 µs with tiles of 128 by 128 and eight warps, and 30 with four (an H200,
    2026-11-26).
    """
    if not work.product_flops or work.wait_us:
        return 0.0
    rounds = max(1.0, math.ceil(work.programs / (held * sheet.sms)))
    return rounds * work.tail_work / work.programs / work.warps / sheet.warp_size * rates.FEWEST_CLOCKS / sheet.clock_mhz


def _spilled(work: LaunchWork, sheet: HardwareSheet) -> float:
    """Bytes of registers that do not fit, written and read once a step."""
    beyond = max(0.0, work.registers - _most_registers(work, sheet))
    return 2 * 4 * beyond * work.warps * sheet.warp_size * work.programs * work.steps


def _most_registers(work: LaunchWork, sheet: HardwareSheet) -> float:
    """What a compiler gives a thread at most: one program must fit, in units of 8 registers."""
    return min(float(sheet.max_registers_per_thread), sheet.registers_per_sm / (work.warps * sheet.warp_size) // 8 * 8)


def _product_us(work: LaunchWork, sheet: HardwareSheet) -> float:
    if not work.product_flops:
        return 0.0
    return work.product_flops / work.product_tflops / 1e6 * _stretch(work, sheet)


def _additions_us(work: LaunchWork) -> float:
    """Additions to one line wait for one another, whatever else the L2 does."""
    return work.additions / rates.ADDITIONS_PER_LINE_US / work.addition_lines if work.addition_lines else 0.0


def _stretch(work: LaunchWork, sheet: HardwareSheet) -> float:
    """How much longer the busiest multiprocessor works than the average one."""
    return math.ceil(work.programs / sheet.sms) * sheet.sms / work.programs
