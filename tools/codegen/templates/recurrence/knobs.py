"""Parameters of a loop's kernel: legal values, and first values from the shapes as written."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.recurrence.layout import recurrence_layout_of
from tools.codegen.templates.shared.knob import Knob, Parameters, Settings
from tools.records import ActionKind, HardwareSheet

KNOBS: Mapping[str, Knob] = {
    "ROWS": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    "num_warps": Knob(ActionKind.LAUNCH, (1, 2, 4, 8, 16)),
    "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4)),
}
A_THREAD = 64
"""Elements of a step's largest tile that a thread may hold."""


def recurrence_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Choose first parameters: programs for all multiprocessors, a warp for a small tile, and few elements a thread for a large one."""
    layout = recurrence_layout_of(kernel)
    rows = min(power_of_two(layout.size("rows")), 128 if layout.largest == 1 else 16)
    while rows > 1 and (rows * layout.largest > 4096 or layout.size("outer") * -(-layout.size("rows") // rows) < sms):
        rows //= 2
    if layout.largest == 1:
        rows = max(rows, min(32, power_of_two(layout.size("rows"))))
    warps = 1
    while warps < 16 and rows * layout.largest > 32 * warps * A_THREAD // 4:
        warps *= 2
    return {"ROWS": rows, "num_warps": warps, "num_stages": 3}


def recurrence_fits(kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` changes the kernel and leaves a tile that registers can hold."""
    layout = recurrence_layout_of(kernel)
    rows, warps = int(parameters["ROWS"]), int(parameters["num_warps"])
    if rows > power_of_two(layout.size("rows")):
        return False
    tile = rows * layout.largest
    return tile <= 32 * warps * A_THREAD * 2 and (tile >= 8 * warps or warps == 1)
