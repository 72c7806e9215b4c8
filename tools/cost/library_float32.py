"""How long cuBLAS takes for a product of float32 matrices without tensor cores."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.products import Products
from tools.hardware import rates
from tools.records import ITEM_BYTES, HardwareSheet

SHARE, SUM, FILLED = 0.79, 512, 32
"""Share of the float32 rate that large products reach; the summed elements with which half of the operands' bytes are read beside the sums;
the multiple to which rows and columns are filled up. Of 17 products on an H100 (2026-11-26, torch 2.11) and five on an H200, with sums of
16 to 524,288 elements and 16 to 32,768 columns, the root mean square of ln(modelled / measured) is 0.12; it was 0.31 by the larger of
computing at 0.75 of the rate and moving."""


def is_float32_product(kernel: Kernel, dtype: str) -> bool:
    """Whether a region is a product of float32 matrices, none of them a vector."""
    return kernel.contraction is not None and dtype == "float32" and min(_sides(kernel)) > 1


def float32_us(kernel: Kernel, products: Products, sheet: HardwareSheet) -> float:
    """Time of such a product, microseconds.

    Results leave a tile when its sum is done, and of a short sum the operands come before it begins: neither goes on beside the sums.
    """
    filled = math.prod(-(-size // FILLED) * FILLED / size for size in _sides(kernel))
    computing = products.flops * filled / (sheet.fp32_tflops * SHARE) / 1e6
    loads, outputs = kernel.builder.loads, kernel.outputs
    read, written = (sum(each.meta.numel * ITEM_BYTES[each.meta.dtype] for each in side) for side in (loads, outputs))
    passed = rates.copy_gbps(sheet) * 1e3
    return max((read + written) / passed, computing + (written + read / (1 + products.summed / SUM)) / passed)


def _sides(kernel: Kernel) -> tuple[int, int]:
    """Count rows and columns."""
    found = kernel.contraction
    assert found is not None
    return kernel.builder.count(found.rows)[0], kernel.builder.count(found.cols)[0]
