"""What the launches of products with computed operands do."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.product.knobs import tiles_of
from tools.codegen.templates.product.layout import ProductLayout, loads_of, product_layout_of
from tools.codegen.templates.product.operands import Product, varies
from tools.codegen.templates.product.runs import lies_within, loads_by_run
from tools.codegen.templates.product.shared_memory import shared_bytes
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.split_on_the_way import WAIT_US
from tools.codegen.templates.shared.tile_launch import TiledSum, pass_launch, tiles_launch
from tools.codegen.templates.shared.work import item, nbytes_of, ops_of, work_of
from tools.records import HardwareSheet

SHARED_LOAD = 28.0
"""Instructions of an element for each value that a group of the sum shares, where a step is not within one group: it is read for every
element then. Fitted on 16 by 4096 by 11008 with groups of 128 numbers of four bits and two such values, which took 111 µs (an H200,
2026-11-26; quantised/int4_group_linear of the wild suite). Within a group nothing was measured."""


def product_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """The tiles, each product with its steps, and the sum of split ones."""
    plan = product_layout_of(kernel)
    splits, outputs = int(parameters["SPLIT_K"]), plan.n_batch * plan.n_rows * plan.n_cols
    sums = len(plan.products)
    moved = float(sum(nbytes_of(access) for access in plan.accesses)) + (8.0 * outputs * splits * sums if splits > 1 else 0.0)
    each = [_product(kernel, plan, number, moved if number == 0 else 0.0, parameters, sheet) for number in range(sums)]
    whole = each[0]._replace(shared_bytes=float(shared_bytes(kernel, parameters, sheet)))
    for other in each[1:]:
        whole = whole._replace(
            l2_bytes=whole.l2_bytes + other.l2_bytes,
            steps=whole.steps + other.steps,
            lane_work=whole.lane_work + other.lane_work,
            registers=whole.registers + other.registers - 40,
            product_flops=whole.product_flops + other.product_flops,
            product_tflops=min(whole.product_tflops, other.product_tflops),
        )
    return (whole, pass_launch(float(outputs * 4 * (splits + 1) * sums), sheet)) if splits > 1 else (whole,)


def _product(kernel: Kernel, plan: ProductLayout, number: int, moved: float, parameters: Settings, sheet: HardwareSheet) -> LaunchWork:
    """Describe one product's part: what it loads is what is stored, and what it computes on the way is done in every tile."""
    product, splits = plan.products[number], int(parameters["SPLIT_K"])
    block_m, block_n, block_k = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    steps = math.ceil(plan.n_inner[number] / block_k / splits)
    work = TiledSum(tiles_of(plan, parameters), splits, steps, moved, product.dtype, straight=_straight(kernel, plan, product))
    settings = {**parameters, "accumulate": "chunked" if product.chunked else "direct"}
    launch = tiles_launch(work, settings, ops_of(kernel) if number == 0 else 0.0, sheet)
    sides = ((product.left, block_m), (product.right, block_n))
    loaded = sum(_bytes_each(kernel, plan, product, exprs) * block * block_k for exprs, block in sides)
    inner = next(axis for axis in plan.axes if axis.atoms == product.inner)
    apart = 0 if lies_within(kernel.builder, inner, block_k) else SHARED_LOAD
    computed = 0.0
    for exprs, block in sides:
        shared = len(loads_by_run(kernel.builder, exprs, inner))
        computed += (_ops(kernel, exprs, product.stacked) + apart * shared) * block * block_k
    # the two halves of a byte are one step of the loop
    waits = WAIT_US / len(product.left) if computed and not launch.wait_us else launch.wait_us
    return launch._replace(
        wait_us=waits,
        l2_bytes=float(launch.programs * steps * loaded),
        flight_bytes=float(loaded * max(1, int(parameters["num_stages"]) - 1)),
        lane_work=launch.lane_work + float(launch.programs * steps * computed),
    )


def _straight(kernel: Kernel, plan: ProductLayout, product: Product) -> bool:
    """Whether what the right operand is made of lies along the sum, as far as it varies along it."""
    last = product.inner[-1]
    reads = [plan.accesses[place] for place in loads_of(kernel, product.right)]
    return all(access.strides.get(last, ()) == () for access in reads)


def _bytes_each(kernel: Kernel, plan: ProductLayout, product: Product, exprs: tuple[int, ...]) -> float:
    """Bytes read for an element of an operand: half of one where two are packed in a byte, less where a group shares one."""
    summed = set(product.inner) | ({product.stacked} if product.stacked is not None else set())
    atoms, total = kernel.builder.atoms, 0.0
    for place in loads_of(kernel, exprs):
        access = plan.accesses[place]
        shared = math.prod(atoms.size(atom)[0] for atom in summed - set(access.strides))
        total += item(access) / shared
    return total


def _ops(kernel: Kernel, exprs: tuple[int, ...], stacked: int | None) -> float:
    """Instructions by which an element of an operand is made of what is read; what does not vary along a stack is made once for it."""
    b = kernel.builder
    seen = b.behind(exprs)
    made = [expr for expr in seen if stacked is not None and varies(b, expr, frozenset({stacked}))]
    again = work_of(b.exprs[expr].op for expr in made) * (len(exprs) / len(set(exprs)) - 1)
    return (work_of(b.exprs[expr].op for expr in seen) + again) / len(exprs)
