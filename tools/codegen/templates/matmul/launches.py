"""What the launches of a matrix product do: its tiles, split-K and stream-K sums, and the passes before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.matmul.layout import MatmulLayout, matmul_layout_of
from tools.codegen.templates.matmul.legality import EXCHANGED, OPERAND_STATIONARY, left_is_stationary, packable_operands, tiles_of
from tools.codegen.templates.matmul.stationary_launch import stationary_launch, walked_bytes
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.flow import flow_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.prepack import PREPACKED, WEIGHTS
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS, SplitFloat
from tools.codegen.templates.shared.split_pass import split_pass
from tools.codegen.templates.shared.tile_launch import TiledSum, pass_launch, tiles_launch
from tools.codegen.templates.shared.work import SECTOR, item, nbytes_of, ops_of
from tools.hardware import rates
from tools.records import HardwareSheet

SHARE_COST = 1.18
"""Time of a launch of equal shares over what its steps take elsewhere: fitted there on `stream_k`, which gained nothing
(882 µs against 880)."""
RESULT_CYCLES = 0.72
"""Cycles of a multiprocessor in which one result leaves the tile of a program that makes no other or walks tiles one after the other:
what short sums wait for, and long ones do not notice. Fitted on five calls with sums of 32 to 112 elements on an NVIDIA H200 (2026-11-21),
among them 16384 by 64 by 16384 (docs/results/generated-kernels.md); of one of them, 112 to 672 channels at 224 by 224, kernel and pass by
the profiler, 1176 and 125 µs. Modelled over measured is 0.88 to 1.21."""
HALF_RESULT = 0.7
"""The same of a result of two bytes over that of four: 6144 by 256 by 6144 in bfloat16 took about 68 µs, modelled 106 without this and 77
with it (an H100, 2026-11-26; protein/outer_product_mean of the wild suite)."""

NARROW_SHARE = 0.28
"""What is left of the rate of products whose rows begin where a thread can only read one element at a time: 32768 by 588 by 1024 halves
took about 350 µs with tiles of 128 by 128, modelled 110 without this (an H100, 2026-11-26; image/patch_embedding of the wild suite). Of
float32, 8205 by 2949 by 5921: 5.4 and 7.1 ms in halves, modelled 2.0; 15.7 in three products of TF32, modelled 6.0."""
TURNED_SHARE = 0.95
"""Share of the copy rate at which a right operand is laid out along the sum: of float32, two of 75 MB took 106 µs in an einsum (an H100,
2026-11-26; protein/triangle_update of the wild suite). Of halves an assumption."""
FETCHED = 40.0
"""Bytes that come from memory for an element in a sector of its own, where the L2 is too small for all of them: a little more than the
sector. 128 products of 384 by 384 by 384 float32 whose batch lies side by side took about 2700 µs, modelled 740 without this and 2560
with it, and about 1500 once one operand was turned, modelled 790 and 1560 (an H100, 2026-11-26; protein/triangle_update of the wild
suite, less its other kernels)."""
WIDE = 16
"""Triton trusts a stride to be wide where it is a multiple of this."""


def matmul_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """The product, before it the copy of a right operand and the passes that write parts, after it the sum of split tiles.

    Passes over weights that are packed are in no call.
    """
    plan = matmul_layout_of(kernel)
    packed = packable_operands(plan, parameters) if parameters.get(WEIGHTS) == PREPACKED else ()
    if parameters.get("programs") == OPERAND_STATIONARY:
        passes = (pass_launch(nbytes, sheet) for nbytes in (() if packed else walked_bytes(plan)))
        one, held = stationary_launch(plan, parameters, ops_of(kernel), sheet), plan.left if left_is_stationary(plan) else plan.right
        # what a program holds it reads once, what it walks in every step and in two parts
        times = {plan.left.name: 2.0, plan.right.name: 2.0, held.name: 1.0 / one.steps}
        found = {access.name: count * times.get(access.name, 1.0) for access, count in _apart(kernel, plan, parameters, 1)}
        return _reading_apart(one, plan, found, sheet), *passes
    splits, outputs = int(parameters.get("SPLIT_K", 1)), plan.n_batch * plan.n_rows * plan.n_cols
    turned = parameters.get("right") == "k_major" and not plan.right_is_k_major
    exchanged = parameters.get("right") == EXCHANGED
    work = TiledSum(
        tiles=tiles_of(plan, parameters),
        splits=splits,
        steps=math.ceil(plan.n_inner / int(parameters["BLOCK_K"]) / splits),
        moved=float(sum(nbytes_of(a) for a in plan.accesses)) + (2.0 * outputs * 4 * splits if splits > 1 else 0.0),
        dtype=plan.dtype,
        straight=exchanged or turned or plan.right_is_k_major,
        exchanged=exchanged,
        plain=True,
    )
    extra = []
    if turned and plan.right not in packed:
        extra.append(pass_launch(2.0 * nbytes_of(plan.right) / TURNED_SHARE, sheet))
    if splits > 1:
        extra.append(pass_launch(float(outputs * 4 * (splits + 1)), sheet))
    split_float = SPLIT_FLOATS.get(str(parameters["precision"]))
    if split_float:
        extra += [_split(plan, operand, split_float, sheet) for operand in (plan.left, plan.right) if operand not in packed]
    narrow = [operand for operand in (plan.left, plan.right) if _is_narrow(kernel, plan, operand, turned=turned)]
    if narrow and parameters.get("loads") == "descriptors":
        extra.append(pass_launch(2.0 * sum(map(nbytes_of, narrow)), sheet))
    tiles = tiles_launch(work, parameters, ops_of(kernel), sheet)
    if narrow and parameters.get("loads") != "descriptors":
        tiles = tiles._replace(product_tflops=tiles.product_tflops * NARROW_SHARE)
    short = max(item(access) for access in plan.accesses if access.is_output) < 4
    inside = min(plan.n_rows, int(parameters["BLOCK_M"])) * min(plan.n_cols, int(parameters["BLOCK_N"]))
    results = RESULT_CYCLES * (HALF_RESULT if short else 1.0) * inside / max(1, work.steps)
    apart = {access.name: found for access, found in _apart(kernel, plan, parameters, work.steps) if not (turned and access is plan.right)}
    tiles = _reading_apart(tiles._replace(exchange_cycles=tiles.exchange_cycles + results), plan, apart, sheet)
    return (*_dealt(tiles, work, parameters, sheet), *extra)


def _reading_apart(one: LaunchWork, plan: MatmulLayout, apart: Mapping[str, float], sheet: HardwareSheet) -> LaunchWork:
    """Add to a launch what elements of operands cost that lie `apart`, so many in each step, in a sector of their own each."""
    far = sum(apart[access.name] for access in plan.accesses if access.name in apart and _is_far(access, sheet))
    return one._replace(
        exchange_cycles=one.exchange_cycles + sum(apart.values()),
        l2_bytes=one.l2_bytes + sum(apart.values()) * SECTOR * one.steps * one.programs,
        dram_bytes=one.dram_bytes + far * FETCHED * one.steps * one.programs,
    )


def _split(plan: MatmulLayout, operand: Access, split_float: SplitFloat, sheet: HardwareSheet) -> LaunchWork:
    """Describe the pass that writes one operand's parts."""
    inner = next(axis.atoms for axis in plan.axes if axis.name == "inner")
    vectors = operand.meta.numel // plan.n_inner
    return split_pass(split_float, vectors, plan.n_inner, sheet, across=operand.strides[inner[-1]] != ())


def _is_narrow(kernel: Kernel, plan: MatmulLayout, operand: Access, *, turned: bool) -> bool:
    """Whether an operand has rows that begin where a thread can only read one element at a time; the right one may be `turned` first."""
    if turned and operand is plan.right:
        return plan.n_inner % WIDE != 0
    strides = flow_of(kernel.builder, operand).strides.values()
    return any(abs(stride) != 1 and stride % WIDE for stride in strides)


def _apart(kernel: Kernel, plan: MatmulLayout, parameters: Settings, steps: int) -> Iterator[tuple[Access, float]]:
    """Count the elements that a step of a tile finds in a sector and a line of their own: of a matrix whose batch lies side by side."""
    m, n, k = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    atoms = {axis.name: axis.atoms for axis in plan.axes}
    for access in plan.accesses:
        flow, own = flow_of(kernel.builder, access), set(access.strides)
        walked = [name for name in ("rows", "cols", "inner") if own & set(atoms[name])]
        if len(walked) == 2 and all(abs(flow.stride(atoms[name][-1]) or 0) * item(access) >= SECTOR for name in walked):
            yield access, m * n / steps if "inner" not in walked else (m if "rows" in walked else n) * k


def _is_far(access: Access, sheet: HardwareSheet) -> bool:
    """Whether what one program leaves of a sector is no longer in the L2 when another comes for it."""
    return nbytes_of(access) > rates.L2_RESIDENT * sheet.l2_mib * 2**20


def _dealt(one: LaunchWork, work: TiledSum, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """Deal tiles out to programs as `programs` says; `one` has a program for each."""
    programs, tile = parameters.get("programs", "data_parallel"), 4.0 * int(parameters["BLOCK_M"]) * int(parameters["BLOCK_N"])
    rest = work.tiles % sheet.sms
    if programs == "persistent" and work.tiles > sheet.sms:
        each = math.ceil(work.tiles / sheet.sms)
        return (_share(one, 1.0, sheet.sms, one.steps * each, uneven=each * sheet.sms / work.tiles),)
    if programs == "stream_k" and rest:
        written = (sheet.sms + rest) * tile
        shared = _share(one, rest / work.tiles, sheet.sms, rest * one.steps / sheet.sms)
        shared = shared._replace(dram_bytes=shared.dram_bytes + written, product_tflops=one.product_tflops / SHARE_COST)
        whole = (_share(one, 1 - rest / work.tiles, work.tiles - rest, one.steps),) if work.tiles > rest else ()
        return (*whole, shared, pass_launch(written + rest * tile, sheet))
    return (one,)


def _share(one: LaunchWork, part: float, programs: int, steps: float, uneven: float = 1.0) -> LaunchWork:
    """Give `part` of a launch's work to `programs`, of which the busiest has `uneven` times as much as they have on average."""
    return one._replace(
        programs=programs,
        steps=steps,
        dram_bytes=one.dram_bytes * part,
        l2_bytes=one.l2_bytes * part,
        lane_work=one.lane_work * part * uneven,
        product_flops=one.product_flops * part * uneven,
    )
