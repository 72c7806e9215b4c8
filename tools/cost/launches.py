"""From a region of a schedule to the launches it will make, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tools.codegen.schedule.partition import ATTENTION, CONVOLUTION, DEPTHWISE, MATMUL, POINTWISE, POOLING, ROWS, Planned
from tools.cost.launch import LaunchShape, shape_us
from tools.cost.launch_compute import attention_shapes, convolution_shapes, product_shapes
from tools.cost.launch_depthwise import depthwise_shapes
from tools.cost.launch_memory import Value, pointwise_shapes, pooling_shapes
from tools.cost.launch_rows import row_shapes
from tools.records import HardwareSheet

MODELLED = frozenset({POINTWISE, ROWS, POOLING, MATMUL, DEPTHWISE, ATTENTION, CONVOLUTION})
"""Templates whose launches the coarse model knows, `convolution` by assumption alone; of others it says nothing."""


def region_shapes(planned: Planned, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """Describe the launches of one generated region; empty where its template is not modelled."""
    kernel = planned.kernel
    described: dict[str, Callable[[], tuple[LaunchShape, ...]]] = {
        POINTWISE: lambda: pointwise_shapes(kernel, parameters),
        ROWS: lambda: row_shapes(kernel, parameters, sheet),
        POOLING: lambda: pooling_shapes(kernel, parameters),
        DEPTHWISE: lambda: depthwise_shapes(kernel, parameters),
        MATMUL: lambda: product_shapes(kernel, parameters, sheet),
        CONVOLUTION: lambda: convolution_shapes(kernel, parameters, sheet),
        ATTENTION: lambda: attention_shapes(kernel, parameters, sheet),
    }
    return described[planned.template]() if planned.template in MODELLED else ()


def region_us(planned: Planned, parameters: Mapping[str, Value], sheet: HardwareSheet) -> float | None:
    """Time of a region by the coarse model, microseconds; None where its template is not modelled."""
    shapes = region_shapes(planned, parameters, sheet)
    return sum(max(sheet.launch_us, shape_us(shape, sheet)) for shape in shapes) if shapes else None
