"""What the launches of memory-bound regions do: pointwise chains, row reductions, poolings and depthwise convolutions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tools.codegen.kernel import Kernel
from tools.codegen.remembered import pointwise_layout_of, row_layout_of
from tools.codegen.rows_online import online_pairs
from tools.codegen.rows_space import RowLayout
from tools.codegen.sizes import power_of_two, product
from tools.codegen.spaces import Access
from tools.codegen.template_window import loads_along, window_layout
from tools.profiling import rates
from tools.profiling.shape import LaunchShape
from tools.records import ITEM_BYTES, HardwareSheet

Value = bool | int | float | str
WARP = 32
WIDEST = 16
"""Bytes of the widest access of a thread."""
SECTOR = 32
"""Bytes that move between L1 and L2 at least."""
OVERHEAD = 4.0
"""Instructions of a lane for the address and the mask of one access; an assumption."""
SLOW_OPS = {"exp": 4, "exp_fast": 4, "log": 6, "tanh": 12, "erf": 16, "div": 6, "sqrt": 6, "rsqrt": 4, "pow": 16, "sin": 12, "cos": 12}
"""Instructions behind one such operation; others count 1. Read off the machine code of our own kernels on sm_90, rounded."""


def pointwise_shapes(kernel: Kernel, parameters: Mapping[str, Value]) -> tuple[LaunchShape, ...]:
    """One launch, each element once."""
    plan = pointwise_layout_of(kernel)
    warps, a_thread = int(parameters["num_warps"]), int(parameters["ELEMENTS"])
    tile, total = a_thread * WARP * warps, max(nbytes_of(a) // item(a) for a in plan.accesses if a.is_output)
    programs, lanes = math.ceil(total / tile), float(total)
    if parameters["algorithm"] == "tile" and plan.tiles:
        wide = min(power_of_two(plan.n_cols), tile)
        rows, cols = math.ceil(total / plan.n_cols / (tile // wide)), math.ceil(plan.n_cols / wide)
        programs, lanes = rows * cols, float(rows * cols * tile)
    whole = [a for a in plan.accesses if nbytes_of(a) // item(a) >= total]
    # no piece of a concatenation is as large as what they make: the largest stands for all
    reads = [a for a in whole if not a.is_output] or [max((a for a in plan.accesses if not a.is_output), key=nbytes_of)]
    moved = float(sum(nbytes_of(a) for a in plan.accesses))
    vector = min(WIDEST // max(item(a) for a in whole), a_thread)
    work = ops_of(kernel) + OVERHEAD * len(plan.accesses) / vector + divisions(plan.groups, parameters["algorithm"] == "tile")
    return (
        LaunchShape(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=moved,
            flight_bytes=tile * sum(item(a) for a in reads) * share_of_loads(moved, reads),
            steps=1,
            lane_work=lanes * work + programs * warps * WARP * rates.PROGRAM_WORK,
            registers=20 + a_thread * (len(reads) + 1),
        ),
    )


def row_shapes(kernel: Kernel, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """One launch, or where rows are split one a level and one that combines."""
    plan = row_layout_of(kernel)
    row = _Row.read(kernel, plan, parameters)
    if parameters["algorithm"] != "split":
        return (_row_shape(row, row.programs, row.n_cols, row.passes, sheet),)
    splits = min(int(parameters["SPLITS"]), math.ceil(row.n_cols / row.block))
    chunk = math.ceil(row.n_cols / splits)
    if row.scans:
        return _split_scan(row, row.programs * splits, chunk, sheet)
    partial = _row_shape(row, row.programs * splits, chunk, 1, sheet)
    combine = LaunchShape(
        programs=row.programs * (splits if row.is_wide else 1),
        warps=row.warps,
        dram_bytes=float(row.wide_bytes if row.is_wide else 0) + 1.0,
        l2_bytes=float(row.programs * row.rows * splits * 8),
        flight_bytes=partial.flight_bytes,
        steps=1,
        lane_work=float(row.programs * row.warps * WARP * (splits / WARP + rates.PROGRAM_WORK)),
        barriers=2.0,
    )
    return (partial,) * max(1, row.levels - row.merged) + (combine,)


def _split_scan(row: _Row, programs: int, chunk: int, sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """One launch that adds up each chunk, and one that scans it: what it reads again comes from the L2 as far as that holds it."""
    partial = _row_shape(replace(row, scans=False, is_wide=False, other_bytes=0), programs, chunk, 1, sheet)
    scan = _row_shape(row, programs, chunk, 1, sheet)
    again = min(1.0, max(0.0, row.wide_bytes / (sheet.l2_mib * 2**20) - rates.L2_RESIDENT))
    return partial, replace(scan, dram_bytes=scan.dram_bytes - (1 - again) * partial.dram_bytes)


@dataclass(frozen=True)
class _Row:
    """A row region with its parameters."""

    rows: int
    block: int
    unroll: int
    warps: int
    programs: int
    n_cols: int
    passes: int
    levels: int
    is_wide: bool
    inner: bool
    merged: bool
    scans: bool
    whole: bool
    item: int
    wide_reads: int
    wide_bytes: int
    other_bytes: int
    ops: float
    piece: int

    @classmethod
    def read(cls, kernel: Kernel, plan: RowLayout, parameters: Mapping[str, Value]) -> _Row:
        algorithm, rows = parameters["algorithm"], int(parameters["ROWS"])
        reduced = set(plan.cols)
        wide = [a for a in plan.accesses if set(a.strides) & reduced and nbytes_of(a) // item(a) >= plan.n_cols]
        reads = [a for a in wide if not a.is_output and nbytes_of(a) // item(a) >= plan.n_rows * plan.n_cols // 2] or wide[:1]
        outputs = [a for a in wide if a.is_output]
        levels = _levels(kernel)
        merged = algorithm == "online" and bool(_pairs(kernel))
        passes = 1 if algorithm == "registers" else max(1, levels - merged) + bool(outputs)
        if plan.scans:
            passes = 1
        columns = power_of_two(plan.n_cols)
        whole = algorithm == "registers"
        piece = plan.n_inner if not plan.inner_reduction else 0
        programs = math.ceil(plan.n_rows / rows) if plan.inner_reduction or not plan.n_inner else (
            plan.n_rows // plan.n_inner * math.ceil(plan.n_inner / rows)
        )  # fmt: skip
        return cls(
            rows=rows, block=columns if whole else min(int(parameters["BLOCK_N"]), columns),
            unroll=int(parameters.get("UNROLL", 1)) if rows == 1 and not plan.scans and not whole else 1,
            warps=int(parameters["num_warps"]), programs=max(1, programs), n_cols=plan.n_cols, passes=passes, levels=levels,
            is_wide=bool(outputs), inner=plan.inner_reduction, merged=merged or (algorithm == "split" and bool(_pairs(kernel))),
            scans=plan.scans, whole=whole, item=max((item(a) for a in reads), default=4), wide_reads=len(reads),
            wide_bytes=sum(nbytes_of(a) for a in reads), other_bytes=sum(nbytes_of(a) for a in plan.accesses if a not in reads),
            ops=ops_of(kernel), piece=piece,
        )  # fmt: skip

    @property
    def tile(self) -> int:
        """Elements of one step."""
        return self.rows * self.block * self.unroll


def _row_shape(row: _Row, programs: int, columns: int, passes: int, sheet: HardwareSheet) -> LaunchShape:
    threads = row.warps * WARP
    a_thread = row.tile / threads
    vector = max(1, min(WIDEST // row.item, row.tile // threads))
    steps = 1 if row.whole else math.ceil(columns / (row.block * row.unroll))
    waste = SECTOR / min(SECTOR, row.rows * row.item) if row.piece else 1.0
    held = min(32, sheet.max_threads_per_sm // (WARP * row.warps))
    live = min(programs, held * sheet.sms) * row.rows * columns * row.item
    again = (passes - 1) * min(1.0, max(0.0, live / (sheet.l2_mib * 2**20) - rates.L2_RESIDENT))
    l2_bytes = row.wide_bytes * passes * waste + row.other_bytes
    lanes = float(max(steps * row.tile, threads) * programs * passes)
    exchange, barriers = _exchange(row, vector)
    kept = max(1.0, a_thread) * (row.wide_reads + (1 if row.whole or row.merged or row.scans else 0.5))
    loads = row.wide_bytes + row.other_bytes if row.is_wide else row.wide_bytes
    return LaunchShape(
        programs=programs,
        warps=row.warps,
        dram_bytes=row.wide_bytes * waste * (1 + again) + row.other_bytes,
        l2_bytes=float(l2_bytes),
        flight_bytes=max(row.tile, threads / 4) * row.item * row.wide_reads * (loads / max(row.wide_bytes, 1)),
        steps=steps * passes,
        lane_work=lanes * (row.ops / max(passes, 1) + OVERHEAD * row.wide_reads / vector) + programs * threads * rates.PROGRAM_WORK,
        registers=24 + kept,
        exchange_cycles=exchange,
        barriers=barriers + (2.0 / steps if row.warps > 1 else 0.0),
    )


def _exchange(row: _Row, vector: int) -> tuple[float, float]:
    """Cycles of shared memory and barriers of one step: what its warps reduce together."""
    reductions = 2 if row.merged else 1
    across = row.block * row.rows / (WARP * vector)
    if row.scans:
        # each warp adds up what the warps before it hold
        return 2.0 * row.tile / WARP, 2.0 + min(row.warps, max(across / row.rows, 1.0)) if row.warps > 1 else 0.0
    if row.unroll > 1:
        # blocks of one step that do not lie below one another in one thread are reduced across warps
        spread = min(row.unroll, row.warps / max(across, 1.0))
        if spread <= 1:
            return 0.0, 0.0
        # Triton's scratch puts the values of one lane `vector` apart and of one column `spread` apart: banks collide
        return 2 * reductions * vector * min(WARP, vector * spread) * min(row.warps, max(across, 1.0) * spread), 2.0 * reductions
    if row.whole or not row.merged:
        return 0.0, 0.0
    return (0.0, 2.0) if row.warps > 1 and row.inner else (0.0, 0.0)


def window_shapes(kernel: Kernel, parameters: Mapping[str, Value]) -> tuple[LaunchShape, ...]:
    """One launch; neighbours share what they read where their windows stay in the L1."""
    accesses, axis = window_layout(kernel)
    window = kernel.window
    assert window is not None
    atoms = kernel.builder.atoms
    sizes = [product((atoms.size(atom) for atom in group), atoms.traces)[0] for group in axis.groups]
    warps, a_thread = int(parameters["num_warps"]), int(parameters["ELEMENTS"])
    tile, total = a_thread * WARP * warps, math.prod(sizes)
    programs, height, width = math.ceil(total / tile), max(1, tile // sizes[-1]), min(tile, sizes[-1])
    tiled = parameters.get("algorithm") in ("tile", "pairs")
    if tiled and len(sizes) > 1:
        width = min(power_of_two(sizes[-1]), tile)
        height = tile // width
        programs = math.prod(sizes[:-2]) * math.ceil(sizes[-2] / height) * math.ceil(sizes[-1] / width)
        height = min(height, sizes[-2])
    # the input is the largest tensor read: its windows overlap, or are at least as many elements as the result
    places, source = math.prod(window.size), max((a for a in accesses if not a.is_output), key=nbytes_of)
    footprint = height * window.stride[-2 if len(window.stride) > 1 else -1] * width * window.stride[-1] * item(source)
    missed = min(1.0, footprint / rates.WINDOW_L1_BYTES)
    vector = min(WIDEST // item(source), a_thread)
    sector = min(SECTOR, vector * window.stride[-1] * item(source))
    moved = float(sum(nbytes_of(a) for a in accesses))
    lanes = float(programs * tile)
    flat = 0.0 if tiled else 8.0 * len(sizes)
    if parameters.get("algorithm") == "pairs":
        # a load of neighbours that are shared out asks for nothing twice
        sector, places = item(source), math.prod(window.size[:-1]) * len(loads_along(window))
    return (
        LaunchShape(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=moved + lanes * places * sector * missed,
            flight_bytes=tile * window.stride[-1] * item(source) * 2,
            steps=1,
            lane_work=lanes * (places * (2 * OVERHEAD) + flat + ops_of(kernel)) + programs * warps * WARP * rates.PROGRAM_WORK,
            registers=24 + a_thread * 6,
        ),
    )


def depthwise_shapes(kernel: Kernel, parameters: Mapping[str, Value]) -> tuple[LaunchShape, ...]:
    """One launch; a tile of one plane a program, or of several lines."""
    depthwise = kernel.depthwise
    assert depthwise is not None
    sizes = [kernel.builder.atoms.size(atom)[0] for dim in kernel.builder.atoms.resolve(depthwise.dims) for atom in dim]
    stride, taps = ((1,) * len(depthwise.size) if depthwise.transposed else depthwise.stride), depthwise.size
    if len(taps) == 1:
        sizes = [math.prod(sizes[:-1]), sizes[-1]]
    block_m, block_n, warps = int(parameters["BLOCK_M"]), int(parameters["BLOCK_N"]), int(parameters["num_warps"])
    rows, cols = sizes[-2], sizes[-1]
    programs = math.prod(sizes[:-2]) * math.ceil(rows / block_m) * math.ceil(cols / block_n)
    metas = [load.meta for load in kernel.builder.loads] + [kernel.builder.loads[depthwise.source].meta]
    moved = float(sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas))
    lanes, places = float(programs * block_m * block_n), math.prod(depthwise.size)
    a_thread = block_m * block_n / (WARP * warps)
    # what neighbouring tiles read too: the kernel's reach over the tile's, and in a volume whole planes
    again = 1 + (taps[-2] / max(1, block_m * stride[-2]) if len(taps) > 1 else taps[0] / (block_n * stride[0]))
    again *= max(1.0, taps[0] / stride[0]) if len(taps) > 2 else 1.0
    return (
        LaunchShape(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=moved * again,
            flight_bytes=block_m * block_n * 4.0 * 2,
            steps=1,
            lane_work=lanes * places * (1 + OVERHEAD) + programs * warps * WARP * rates.PROGRAM_WORK,
            registers=24 + 5 * a_thread,
        ),
    )


def item(access: Access) -> int:
    """Bytes of one element."""
    return ITEM_BYTES[access.meta.dtype]


def nbytes_of(access: Access) -> int:
    """Bytes of a tensor at the sizes as written."""
    return access.meta.numel * item(access)


def ops_of(kernel: Kernel) -> float:
    """Instructions an element, by the operations of a region."""
    free = ("load", "const", "size", "argument", "index")
    ops = [kernel.builder.exprs[place].op for place in _emitted(kernel)]
    return sum(SLOW_OPS.get(op, 1) for op in ops if op not in free)


def _emitted(kernel: Kernel) -> list[int]:
    """Number the operations that an output needs: the positions of a maximum that nobody reads are not computed."""
    stack, needed = [output.expr for output in kernel.outputs], set[int]()
    while stack:
        place = stack.pop()
        if place not in needed:
            needed.add(place)
            stack += kernel.builder.exprs[place].args
    return sorted(needed)


def divisions(groups: tuple[tuple[int, ...], ...], tiled: bool) -> float:
    """Instructions by which a lane takes its number apart."""
    return 8.0 * max(0, len(groups) - (2 if tiled else 1))


def share_of_loads(moved: float, reads: list[Access]) -> float:
    """All traffic over what loads bring: stores wait for nothing, so loads in flight carry their part too."""
    loaded = sum(nbytes_of(a) for a in reads)
    return moved / loaded if loaded else 1.0


def _levels(kernel: Kernel) -> int:
    """Reductions that wait for one another."""
    depth: list[int] = []
    for expr in kernel.builder.exprs:
        depth.append(max((depth[arg] for arg in expr.args), default=0) + expr.op.startswith("reduce_"))
    return max(1, max((depth[place] for place in _emitted(kernel)), default=1))


def _pairs(kernel: Kernel) -> dict[int, int]:
    builder = kernel.builder
    return online_pairs(builder, [place for place in _emitted(kernel) if builder.exprs[place].op.startswith("reduce_")])
