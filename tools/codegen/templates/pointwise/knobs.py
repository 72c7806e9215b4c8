"""Parameters of a pointwise kernel: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.pointwise.layout import SMALLEST_ROW, pointwise_layout_of
from tools.codegen.templates.shared.knob import WARPS, Knob, Parameters, Settings
from tools.records import ITEM_BYTES, ActionKind

KNOBS: Mapping[str, Knob] = {
    "algorithm": Knob(ActionKind.ALGORITHM, ("flat", "tile")),
    "ELEMENTS": Knob(ActionKind.VECTORISATION, (1, 2, 4, 8, 16, 32)),
    "num_warps": WARPS,
}


def pointwise_defaults(kernel: Kernel) -> Parameters:
    """Two independent 16-byte loads of each operand a thread."""
    layout = pointwise_layout_of(kernel)
    tile = layout.tiles and layout.n_cols >= SMALLEST_ROW
    elements = max(4, 32 // ITEM_BYTES[layout.accesses[0].meta.dtype])
    return {"algorithm": "tile" if tile else "flat", "ELEMENTS": min(elements, 16), "num_warps": 4}


def pointwise_fits(kernel: Kernel, parameters: Settings, knob: str) -> bool:
    """Whether changing `knob` changes the kernel and leaves a block of a sensible size."""
    if knob == "algorithm":
        return pointwise_layout_of(kernel).tiles
    return 128 <= int(parameters["ELEMENTS"]) * 32 * int(parameters["num_warps"]) <= 16384
