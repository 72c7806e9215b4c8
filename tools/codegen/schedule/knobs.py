"""Parameters of each template: legal values, which kind of action changes each, first values, and what is not worth trying."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tools.codegen.ir.schedule import LIBRARY
from tools.codegen.rewrite.channels_last import FORMAT, FORMATS
from tools.codegen.schedule.knobs_compute import (
    attention_defaults,
    attention_fits,
    convolution_defaults,
    convolution_fits,
    depthwise_defaults,
    depthwise_fits,
    product_defaults,
    product_fits,
)
from tools.codegen.schedule.knobs_memory import pointwise_defaults, pointwise_fits, pooling_defaults, pooling_fits, row_defaults, rows_fit
from tools.codegen.schedule.partition import ATTENTION, CONVOLUTION, DEPTHWISE, MATMUL, POINTWISE, POOLING, ROWS, Planned
from tools.codegen.templates.rows.layout import row_layout_of
from tools.codegen.templates.shared.knob import ROUNDED, WARPS, Knob, Parameters, Value
from tools.codegen.templates.shared.prepack import CHOICES, WEIGHTS
from tools.records import ActionKind, HardwareSheet

KNOBS: dict[str, dict[str, Knob]] = {
    LIBRARY: {FORMAT: Knob(ActionKind.LAYOUT, FORMATS)},
    POINTWISE: {
        "algorithm": Knob(ActionKind.ALGORITHM, ("flat", "tile")),
        "ELEMENTS": Knob(ActionKind.VECTORISATION, (1, 2, 4, 8, 16, 32)),
        "num_warps": WARPS,
    },
    ROWS: {
        "algorithm": Knob(ActionKind.ALGORITHM, ("registers", "looped", "online", "split", "l2_two_pass")),
        "ROWS": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64, 128)),
        "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)),
        "UNROLL": Knob(ActionKind.PIPELINE, (1, 2, 4, 8)),
        "SPLITS": Knob(ActionKind.LAUNCH, (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
        "num_warps": WARPS,
        "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4)),
    },
    POOLING: {
        "algorithm": Knob(ActionKind.ALGORITHM, ("flat", "tile", "pairs", "vec4")),
        "ELEMENTS": Knob(ActionKind.VECTORISATION, (1, 2, 4, 8, 16, 32)),
        "num_warps": WARPS,
    },
    MATMUL: {
        "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
        "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
        "BLOCK_K": Knob(ActionKind.TILING, (16, 32, 64, 128)),
        "SPLIT_K": Knob(ActionKind.ALGORITHM, (1, 2, 4, 8, 16, 32, 64)),
        "GROUP_M": Knob(ActionKind.REORDERING, (1, 4, 8, 16)),
        "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3", "fp16x3", "bf16x3", "bf16x6")),
        "accumulate": Knob(ActionKind.PRECISION, ("direct", "chunked")),
        "right": Knob(ActionKind.LAYOUT, ("as_is", "k_major")),
        "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
        "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4, 5)),
        "programs": Knob(ActionKind.LAUNCH, ("data_parallel", "persistent", "stream_k", "operand_stationary")),
        "loads": Knob(ActionKind.PIPELINE, ("pointers", "descriptors")),
        WEIGHTS: Knob(ActionKind.LAYOUT, CHOICES),
    },
    DEPTHWISE: {
        "BLOCK_M": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64)),
        "BLOCK_N": Knob(ActionKind.TILING, (8, 16, 32, 64, 128, 256, 512)),
        "num_warps": WARPS,
    },
    CONVOLUTION: {
        "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
        "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
        "BLOCK_K": Knob(ActionKind.TILING, (16, 32, 64, 128)),
        FORMAT: Knob(ActionKind.LAYOUT, FORMATS),
        "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3", "fp16x3")),
        "accumulate": Knob(ActionKind.PRECISION, ("direct", "chunked")),
        WEIGHTS: Knob(ActionKind.LAYOUT, CHOICES),
        "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
        "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4, 5)),
    },
    ATTENTION: {
        "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128)),
        "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128)),
        "BLOCK_D": Knob(ActionKind.TILING, (32, 64, 128, 256)),
        "BLOCK_V": Knob(ActionKind.TILING, (32, 64, 128, 256)),
        "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3")),
        "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
        "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4)),
    },
}
"""Every parameter that a schedule can hold."""


def defaults(planned: Planned, sms: int) -> Parameters:
    """Choose first parameters from the shapes as written and the number of multiprocessors."""
    if planned.template == POINTWISE:
        return pointwise_defaults(planned.kernel)
    if planned.template == ROWS:
        return row_defaults(planned.kernel, sms)
    if planned.template == DEPTHWISE:
        return depthwise_defaults(planned.kernel)
    if planned.template == CONVOLUTION:
        return convolution_defaults(planned.kernel, sms)
    if planned.template == POOLING:
        return pooling_defaults(planned.kernel)
    return attention_defaults(planned.kernel) if planned.template == ATTENTION else product_defaults(planned.kernel, sms)


def possible(planned: Planned, parameters: Mapping[str, Value]) -> bool:
    """Whether the template can be emitted with these parameters: not every row can be given to several programs."""
    if planned.template != ROWS:
        return True
    layout = row_layout_of(planned.kernel)
    if parameters["algorithm"] == "l2_two_pass":
        return layout.fits_two_pass and int(parameters["ROWS"]) == 1
    return parameters["algorithm"] != "split" or not layout.chained


def worthwhile(planned: Planned, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes the kernel and can run on the device."""
    checks: dict[str, Callable[[], bool]] = {
        POINTWISE: lambda: pointwise_fits(planned.kernel, parameters, knob),
        ROWS: lambda: rows_fit(planned.kernel, parameters, knob),
        POOLING: lambda: pooling_fits(planned.kernel, parameters, knob),
        MATMUL: lambda: product_fits(planned.kernel, parameters, knob, sheet),
        CONVOLUTION: lambda: convolution_fits(planned.kernel, parameters, knob, sheet),
        DEPTHWISE: lambda: depthwise_fits(planned.kernel, parameters),
        ATTENTION: lambda: attention_fits(planned.kernel, parameters, knob, sheet),
    }
    return checks[planned.template]()
