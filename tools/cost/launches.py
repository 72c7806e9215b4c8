"""From a region of a schedule to the launches it will make, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tools.codegen.ir.launch import LaunchWork
from tools.codegen.schedule.partition import ATTENTION, CONVOLUTION, DEPTHWISE, MATMUL, POINTWISE, POOLING, ROWS, Planned
from tools.codegen.templates.attention.launches import attention_launches
from tools.codegen.templates.convolution.launches import convolution_launches
from tools.codegen.templates.depthwise.launches import depthwise_launches
from tools.codegen.templates.matmul.launches import product_launches
from tools.codegen.templates.pointwise.launches import pointwise_launches
from tools.codegen.templates.pooling.launches import pooling_launches
from tools.codegen.templates.rows.launches import row_launches
from tools.codegen.templates.shared.knob import Value
from tools.cost.launch_time import launch_time_us
from tools.records import HardwareSheet

MODELLED = frozenset({POINTWISE, ROWS, POOLING, MATMUL, DEPTHWISE, ATTENTION, CONVOLUTION})
"""Templates whose launches the coarse model knows, `convolution` by assumption alone; of others it says nothing."""


def region_launches(planned: Planned, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """Describe the launches of one generated region; empty where its template is not modelled."""
    kernel = planned.kernel
    described: dict[str, Callable[[], tuple[LaunchWork, ...]]] = {
        POINTWISE: lambda: pointwise_launches(kernel, parameters),
        ROWS: lambda: row_launches(kernel, parameters, sheet),
        POOLING: lambda: pooling_launches(kernel, parameters),
        DEPTHWISE: lambda: depthwise_launches(kernel, parameters),
        MATMUL: lambda: product_launches(kernel, parameters, sheet),
        CONVOLUTION: lambda: convolution_launches(kernel, parameters, sheet),
        ATTENTION: lambda: attention_launches(kernel, parameters, sheet),
    }
    return described[planned.template]() if planned.template in MODELLED else ()


def region_us(planned: Planned, parameters: Mapping[str, Value], sheet: HardwareSheet) -> float | None:
    """Time of a region by the coarse model, microseconds; None where its template is not modelled."""
    shapes = region_launches(planned, parameters, sheet)
    return sum(max(sheet.launch_us, launch_time_us(shape, sheet)) for shape in shapes) if shapes else None
