"""How long cuBLAS takes for a product of float32 matrices without tensor cores."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.products import Products
from tools.hardware import rates
from tools.records import ITEM_BYTES, HardwareSheet

SHARE, FILLED, SHORT = 0.78, 32, 25
"""Share of the float32 rate that large products reach; the multiple to which rows and columns are filled up; summed elements that the start
and the end of a tile take as long as. Fitted with the next four on 22 products on an H100 and 36 on an H200 (2026-11-26, torch 2.11), with
sums of 8 to 524,288 elements and 8 to 32,768 columns: the root mean square of ln(modelled / measured) is 0.14. On 22 of them it is 0.13; it
was 0.31 by the larger of computing at 0.75 of the rate and moving. That of 524,288 elements is the farthest, at 1.4."""
TILE, ALONE = (128, 64), 0.8
"""Rows and columns of a tile; the share of the rate that is left where a multiprocessor has a single one."""
ELEMENT_US, LONGEST = 0.045, 512
"""Time of a tile for each element of its sum, at least, and the elements from which on several tiles share one."""
IN_BATCH_US = 0.03
"""The same of a batch's products, however many elements there are: no two tiles share a sum. Eight of 3 by 262,144 by 3 took 7,900 µs on an
H200 (2026-11-29)."""
BESIDE = 1.25
"""Exponent of the norm of computing and moving: little of the one goes on beside the other."""


def is_float32_product(kernel: Kernel, dtype: str) -> bool:
    """Whether a region is a product of float32 matrices, none of them a vector."""
    return kernel.contraction is not None and dtype == "float32" and min(_sides(kernel)) > 1


def float32_us(kernel: Kernel, products: Products, sheet: HardwareSheet) -> float:
    """Time of such a product, microseconds."""
    found, (rows, cols) = kernel.contraction, _sides(kernel)
    assert found is not None
    batch = kernel.builder.count(found.batch)[0]
    tiles = batch * math.ceil(rows / TILE[0]) * math.ceil(cols / TILE[1])
    busy = min(1.0, ALONE + (1 - ALONE) * max(0.0, tiles / sheet.sms - 1))
    filled = math.prod(-(-size // FILLED) * FILLED / size for size in (rows, cols))
    computing = products.flops * filled * (1 + SHORT / products.summed) / (sheet.fp32_tflops * SHARE * busy) / 1e6
    computing = max(computing, ELEMENT_US * min(products.summed, LONGEST), IN_BATCH_US * products.summed * (batch > 1))
    metas = [each.meta for side in (kernel.builder.loads, kernel.outputs) for each in side]
    moving = sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas) / rates.copy_gbps(sheet) / 1e3
    return float((computing**BESIDE + moving**BESIDE) ** (1 / BESIDE))


def _sides(kernel: Kernel) -> tuple[int, int]:
    """Count rows and columns."""
    found = kernel.contraction
    assert found is not None
    return kernel.builder.count(found.rows)[0], kernel.builder.count(found.cols)[0]
