"""Theoretical occupancy: how many programs of a kernel one multiprocessor holds at once, and which resource limits them."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from tools.records import HardwareSheet, KernelResources, Record

Limiter = Literal["warps", "registers", "shared memory", "blocks"]


class Occupancy(Record):
    """What fits on one multiprocessor (or compute unit) at once."""

    blocks_per_sm: int
    """Resident programs; 0 where not even one fits."""
    warps_per_sm: int
    fraction: float
    """Resident warps over the most the device holds."""
    limiter: Limiter
    """The resource that runs out first; `warps` where the device is full."""


class _Rules(NamedTuple):
    """Allocation rules of one architecture."""

    max_blocks: int
    """Resident blocks a multiprocessor can manage."""
    register_unit: int
    """Registers are given to a warp in multiples of this."""
    shared_unit: int
    """Shared memory is given to a block in multiples of this many bytes."""
    shared_reserved: int
    """Bytes the system takes from every block's shared memory."""
    partitions: int
    """Sub-cores among which the register file is divided."""


_CUDA_BLOCKS = {75: 16, 80: 32, 86: 16, 87: 16, 89: 24, 90: 32, 100: 32, 103: 32, 110: 24, 120: 24, 121: 24}
"""Resident blocks a multiprocessor holds, by compute capability (CUDA Programming Guide, technical specifications; up to 9.0 in
cuda_occupancy.h of CUDA 12.6 too)."""

_REGISTER_UNIT, _SHARED_UNIT, _PARTITIONS = 256, 128, 4
"""cuda_occupancy.h of CUDA 12.6, compute capabilities 8 and 9; taken for 10 and 12 too, where that header says nothing (an assumption)."""

_SHARED_RESERVED = 1024
"""CUDA Programming Guide, compute capability 8.x and later: 1 KB a block is reserved for system use."""

_CDNA = _Rules(max_blocks=16, register_unit=8 * 64, shared_unit=512, shared_reserved=0, partitions=4)
"""gfx90a and gfx942: vector registers in units of 8 a lane of 64 lanes and 4 SIMDs (LLVM, AMDGPU backend, target gfx90a);
16 workgroups a compute unit and LDS in units of 512 bytes (ROCm documentation, occupancy)."""


def occupancy(resources: KernelResources, num_warps: int, sheet: HardwareSheet) -> Occupancy:
    """Compute how many programs of `num_warps` warps stay resident on one multiprocessor of `sheet`.

    The rules are those of NVIDIA's occupancy calculator (cuda_occupancy.h): registers are allocated a warp within a
    quarter of the register file, shared memory a block with the system's share added. A shared-memory carve-out large
    enough is assumed, as Triton's launcher asks for it.
    """
    rules = _rules(sheet)
    max_warps = sheet.max_threads_per_sm // sheet.warp_size
    limits: dict[Limiter, int] = {
        "warps": max_warps // num_warps,
        "registers": _by_registers(resources.registers, num_warps, sheet, rules),
        "shared memory": _by_shared(resources.shared_bytes, sheet, rules),
        "blocks": rules.max_blocks,
    }
    # the first of equals: a device that is full of warps is limited by nothing else
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks_per_sm=blocks, warps_per_sm=blocks * num_warps, fraction=blocks * num_warps / max_warps, limiter=limiter)


def waves(grid: tuple[int, ...], blocks_per_sm: int, sheet: HardwareSheet) -> float:
    """Return how many times a launch fills the device: programs over programs resident at once; 0 where none fits."""
    return math.prod(grid) / (blocks_per_sm * sheet.sms) if blocks_per_sm else 0.0


def _rules(sheet: HardwareSheet) -> _Rules:
    if sheet.backend == "hip":
        return _CDNA
    capability = int(sheet.arch.removeprefix("sm_").rstrip("abcdef"))
    # an architecture newer than the table: the fewest blocks that any has
    blocks = _CUDA_BLOCKS.get(capability, min(_CUDA_BLOCKS.values()))
    return _Rules(blocks, _REGISTER_UNIT, _SHARED_UNIT, _SHARED_RESERVED, _PARTITIONS)


def _by_registers(registers: int, num_warps: int, sheet: HardwareSheet, rules: _Rules) -> int:
    if registers == 0:
        return rules.max_blocks
    a_warp = _round_up(registers * sheet.warp_size, rules.register_unit)
    warps = sheet.registers_per_sm // rules.partitions // a_warp * rules.partitions
    return warps // num_warps


def _by_shared(shared_bytes: int, sheet: HardwareSheet, rules: _Rules) -> int:
    if shared_bytes > sheet.shared_kib_per_block * 1024:
        return 0
    a_block = _round_up(shared_bytes + rules.shared_reserved, rules.shared_unit)
    return int(sheet.shared_kib_per_sm * 1024) // a_block if a_block else rules.max_blocks


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
