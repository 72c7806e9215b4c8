"""Shared memory of a product's kernel: what is loaded ahead for later steps, and the tiles that tensor cores read from there.

Each tensor of a side is loaded apart, in its own dtype. Read off what Triton 3.6 compiled for sm_90: 251 settings of 37 products, of which
one took more, for what follows its sum; that needs a tile of the result at most, and is not counted. With two stages or more all but 4 took
what is counted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.product.layout import STACKED, ProductLayout, product_layout_of
from tools.codegen.templates.product.operands import Product
from tools.codegen.templates.product.runs import lies_within, neighbours_of
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.operand_tile import vanishes
from tools.codegen.templates.shared.tile_launch import GROUP_ROWS, WARPGROUP
from tools.codegen.templates.shared.work import item
from tools.records import ITEM_BYTES, HardwareSheet

COPIED = 4
"""Bytes that lie side by side at least where a copy from memory to shared memory is not through registers."""
SPLIT_TILES = 2
"""Tiles of an operand that is split into a TF32 number and the rest."""


@dataclass(frozen=True)
class _Units:
    """What multiplies the tiles of a kernel."""

    grouped: bool
    """Whether groups of warps do, which read the right operand from shared memory."""
    split: bool
    """Whether operands are split before."""
    plain: bool
    """Whether float32 is multiplied as it is, without tensor cores: both operands are read from shared memory."""


def shared_bytes(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> int:
    """Count the bytes of shared memory that a program needs; sums are made one after the other."""
    plan = product_layout_of(kernel)
    return max(_of_sum(kernel, plan, name, numbers, parameters, sheet) for name, numbers in plan.sums)


def _of_sum(kernel: Kernel, plan: ProductLayout, name: str, numbers: tuple[int, ...], parameters: Settings, sheet: HardwareSheet) -> int:
    inner = next(axis for axis in plan.axes if axis.name == name)
    ahead, loads, tiles, split = max(0, int(parameters["num_stages"]) - 1), dict[tuple[str, int, int], int](), dict[object, int](), 0
    for product in (plan.products[number] for number in numbers):
        pairs = [0] * len(product.left)
        for side in ("left", "right"):
            for load, nbytes in _loads(kernel, plan, product, side, inner, parameters):
                loads[(side, *load)] = nbytes
            for place, expr in enumerate(getattr(product, side)):
                nbytes = _tile(kernel, plan, product, side, expr, inner, parameters, sheet)
                tiles[side, expr, place if STACKED in _varying(kernel, plan, expr) else 0, product.dtype] = nbytes
                pairs[place] += nbytes
        split = max(split, *pairs)
    # what is split is multiplied before the next is
    held = split if _units(plan.products[numbers[0]].dtype, parameters, sheet).split else sum(tiles.values())
    return ahead * sum(loads.values()) + held


def _loads(
    kernel: Kernel, plan: ProductLayout, product: Product, side: str, inner: Axis, parameters: Settings
) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the loads of a step that are made ahead, by number and by the position in a stack, and the bytes of each."""
    b = kernel.builder
    for place, expr in enumerate(getattr(product, side)):
        for load in b.behind((expr,)):
            axes = _varying(kernel, plan, load)
            if b.exprs[load].op == "load" and inner.name in axes and _is_copied(kernel, plan, product, side, load, inner):
                along = set(inner.groups[-1]) & b.leaves_of(b.exprs[load])
                once = not along and lies_within(b, inner, int(parameters["BLOCK_K"]))
                rows = _block(side, parameters) if {"left": "rows", "right": "cols"}[side] in axes else 1
                elements = rows * (1 if once else int(parameters["BLOCK_K"]))
                yield (load, place if STACKED in axes else 0), elements * item(plan.accesses[b.exprs[load].extra])


def _is_copied(kernel: Kernel, plan: ProductLayout, product: Product, side: str, load: int, inner: Axis) -> bool:
    """Whether neighbours of a tile lie side by side, so that they are copied ahead."""
    access = plan.accesses[kernel.builder.exprs[load].extra]
    if item(access) >= COPIED or (side == "left" and neighbours_of(plan, kernel.builder, product, inner) == access):
        return True
    axes = [axis for axis in plan.axes if axis.name in (inner.name, {"left": "rows", "right": "cols"}[side])]
    return any(access.strides.get(axis.atoms[-1]) == () for axis in axes)


def _tile(
    kernel: Kernel, plan: ProductLayout, product: Product, side: str, expr: int, inner: Axis, parameters: Settings, sheet: HardwareSheet
) -> int:
    """Bytes of an operand's own tile, beside what is loaded ahead for it."""
    units = _units(product.dtype, parameters, sheet)
    record = kernel.builder.exprs[expr]
    summed = frozenset(inner.atoms) | (frozenset() if product.stacked is None else {product.stacked})
    parted = side == "left" and neighbours_of(plan, kernel.builder, product, inner) is not None
    as_it_is = record.op == "load" and plan.accesses[record.extra].meta.dtype == product.dtype and not parted
    if units.plain or (as_it_is and not units.split):
        needed = not as_it_is or units.grouped or not _is_copied(kernel, plan, product, side, expr, inner)
    else:
        # registers hold the right operand of warps on their own, and a left one, where all that they are made of is read: then no mask
        # of the sum's end was applied
        from_shared = side == "right" and (units.grouped or product.stacked is not None)
        needed = from_shared or not (as_it_is or parted or vanishes(kernel.builder, expr, summed))
    # nothing is ahead with one stage: what is read comes by shared memory into the order of the units
    needed = needed or int(parameters["num_stages"]) == 1
    tiles = SPLIT_TILES if units.split else 1
    return int(needed) * tiles * _block(side, parameters) * int(parameters["BLOCK_K"]) * ITEM_BYTES[product.dtype]


def _units(dtype: str, parameters: Settings, sheet: HardwareSheet) -> _Units:
    precision = str(parameters["precision"]) if dtype == "float32" else ""
    rows, warps = int(parameters["BLOCK_M"]), int(parameters["num_warps"])
    grouped = sheet.generation == "hopper" and precision != "ieee" and rows >= GROUP_ROWS and warps >= WARPGROUP
    return _Units(grouped, precision == "tf32x3", precision == "ieee")


def _block(side: str, parameters: Settings) -> int:
    return int(parameters[{"left": "BLOCK_M", "right": "BLOCK_N"}[side]])


def _varying(kernel: Kernel, plan: ProductLayout, expr: int) -> set[str]:
    """Name the axes along which an expression varies."""
    atoms = kernel.builder.leaves_of(kernel.builder.exprs[expr])
    return {axis.name for axis in plan.axes if atoms & set(axis.atoms)}
