"""Parameters of recurrent layers: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.recurrent import Cell, Recurrent
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.knob import ROUNDED, Knob, Parameters, Settings
from tools.records import ITEM_BYTES, ActionKind, HardwareSheet

DIAGONAL, LAYERED = "diagonal", "layered"
NOTHING, LAUNCH, HELD = "nothing", "launch", "weights"
KNOBS: Mapping[str, Knob] = {
    "waves": Knob(ActionKind.ALGORITHM, (DIAGONAL, LAYERED)),
    "ahead": Knob(ActionKind.PIPELINE, (NOTHING, LAUNCH, HELD)),
    "BLOCK_B": Knob(ActionKind.TILING, (16, 32, 64)),
    "BLOCK_H": Knob(ActionKind.TILING, (4, 8, 16, 32, 64)),
    "BLOCK_K": Knob(ActionKind.TILING, (16, 32, 64, 128)),
    "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3")),
    "num_warps": Knob(ActionKind.LAUNCH, (1, 2, 4, 8)),
    "num_stages": Knob(ActionKind.PIPELINE, (2, 3, 4, 5)),
}
LEAST = 16
"""Rows and summed elements that a product on tensor cores has at least."""
EARLY = frozenset({"hopper", "blackwell"})
"""Generations on which a launch can begin beside the one ahead."""
A_THREAD = 64
"""Sums that a thread can hold beside what it makes of them."""
HELD_A_THREAD = 128
"""Registers of weights that a thread can hold while it waits for the launch ahead; with 64 nothing spills, with 128 little."""


def recurrent_of(kernel: Kernel) -> Recurrent:
    """Return the layers of a region."""
    if kernel.recurrent is None:
        raise LoweringError("there are no recurrent layers")
    return kernel.recurrent


def lanes_of(cell: Cell) -> int:
    """Columns of a program's product for each unit: its gates, of which there is a power of two."""
    return power_of_two(cell.gates)


def sums_of(recurrent: Recurrent) -> int:
    """Sums of a unit's gate: a GRU keeps what comes of its inputs apart from what comes of its state."""
    return 2 if recurrent.cell is Cell.GRU else 1


def may_slant(recurrent: Recurrent) -> bool:
    """Whether steps of several layers can be made at once: each needs the layer below at the same step only."""
    return recurrent.directions == 1 and len(recurrent.layers) > 1


def refusal(kernel: Kernel, parameters: Settings) -> str:
    """Say why there are no steps of several layers at once; nothing where there are."""
    if parameters["waves"] == LAYERED or may_slant(recurrent_of(kernel)):
        return ""
    return "there is one layer, or a layer needs the last step of the one below"


def recurrent_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Few units a program, so that weights come through as many multiprocessors as there are; long steps along the sum."""
    recurrent = recurrent_of(kernel)
    slanted, hidden = may_slant(recurrent), recurrent.hidden[0]
    places = len(recurrent.layers) if slanted else recurrent.directions
    least = max(8, LEAST // lanes_of(recurrent.cell))
    units = min(64, max(least, power_of_two(hidden)))
    while units > least and places * -(-hidden // units) < sms // 2:
        units //= 2
    half = recurrent.meta.dtype != "float32"
    return {
        "waves": DIAGONAL if slanted else LAYERED,
        "ahead": NOTHING,
        "BLOCK_B": min(64, max(LEAST, power_of_two(recurrent.batch[0]))),
        "BLOCK_H": units,
        "BLOCK_K": min(128 if half else 64, max(LEAST, power_of_two(hidden))),
        "precision": "ieee" if half else "tf32x3",
        "num_warps": 4,
        "num_stages": 4,
    }


def recurrent_fits(kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes the kernel and can run on the device."""
    recurrent = recurrent_of(kernel)
    if knob == "precision" and recurrent.meta.dtype != "float32":
        return False
    longest = {"BLOCK_B": recurrent.batch[0], "BLOCK_H": recurrent.hidden[0], "BLOCK_K": recurrent.hidden[0]}
    if knob in longest and int(parameters[knob]) > max(LEAST, power_of_two(longest[knob])):
        return False
    block_b, block_h, warps = (int(parameters[name]) for name in ("BLOCK_B", "BLOCK_H", "num_warps"))
    columns = block_h * lanes_of(recurrent.cell)
    if block_b * columns * sums_of(recurrent) > A_THREAD * 32 * warps or columns < max(LEAST, 8 * min(4, warps)):
        return False
    if not _fits_ahead(recurrent, parameters, knob, sheet):
        return False
    return not refusal(kernel, parameters) and shared_bytes(recurrent, parameters) <= sheet.shared_kib_per_block * 1024


def _fits_ahead(recurrent: Recurrent, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether a launch can do anything before the one ahead has ended: not where its programs take the room of that one's."""
    if parameters["ahead"] == NOTHING:
        return True
    if sheet.generation not in EARLY or programs_of(recurrent, parameters) > sheet.sms:
        return False
    if parameters["ahead"] == LAUNCH:
        return True
    if recurrent.meta.dtype == "float32" and parameters["precision"] != ROUNDED:
        # numbers that are split, or not for tensor cores, take more registers: a GRU took 70 ms on an H100 (2026-11-26), not 2.2
        return False
    held = summed_of(recurrent, parameters) * int(parameters["BLOCK_H"]) * lanes_of(recurrent.cell) * products_of(parameters)
    words = held * ITEM_BYTES[recurrent.meta.dtype] / 4
    return knob not in ("BLOCK_K", "num_stages") and words <= HELD_A_THREAD * 32 * int(parameters["num_warps"])


def programs_of(recurrent: Recurrent, parameters: Settings) -> int:
    """Count the programs of a wave."""
    places = len(recurrent.layers) if parameters["waves"] == DIAGONAL else recurrent.directions
    block_b, block_h = int(parameters["BLOCK_B"]), int(parameters["BLOCK_H"])
    return places * -(-recurrent.hidden[0] // block_h) * -(-recurrent.batch[0] // block_b)


def products_of(parameters: Settings) -> int:
    """Products of a step: of the states, and of the layer below."""
    return 2 if parameters["waves"] == DIAGONAL else 1


def summed_of(recurrent: Recurrent, parameters: Settings) -> int:
    """Elements of the sum that a program has at once."""
    return max(LEAST, power_of_two(recurrent.hidden[0])) if parameters["ahead"] == HELD else int(parameters["BLOCK_K"])


def shared_bytes(recurrent: Recurrent, parameters: Settings) -> int:
    """Bytes of the tiles that are on their way at once."""
    block_b, block_h, stages = (int(parameters[name]) for name in ("BLOCK_B", "BLOCK_H", "num_stages"))
    tile = (block_b + block_h * lanes_of(recurrent.cell)) * summed_of(recurrent, parameters) * ITEM_BYTES[recurrent.meta.dtype]
    return tile * products_of(parameters) * (1 if parameters["ahead"] == HELD else stages)
