"""Parameters of a dense convolution: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.schedule import FORMAT, FORMATS
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.convolution.layout import ConvolutionLayout, convolution_layout_of
from tools.codegen.templates.convolution.slices import SLICES, can_share, slices_in
from tools.codegen.templates.convolution.split_float import split_convolution_of
from tools.codegen.templates.shared.knob import ROUNDED, Knob, Parameters, Settings
from tools.codegen.templates.shared.prepack import CHOICES, WEIGHTS
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS, SplitFloat, accumulated
from tools.records import ITEM_BYTES, ActionKind, HardwareSheet

KNOBS: Mapping[str, Knob] = {
    "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
    "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
    "BLOCK_K": Knob(ActionKind.TILING, (16, 32, 64, 128)),
    SLICES: Knob(ActionKind.TILING, (1, 2, 4)),
    FORMAT: Knob(ActionKind.LAYOUT, FORMATS, modelled=False),
    "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3", "fp16x3", "fp16x1")),
    "accumulate": Knob(ActionKind.PRECISION, ("direct", "chunked"), modelled=False),
    WEIGHTS: Knob(ActionKind.LAYOUT, CHOICES),
    "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
    "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4, 5)),
}


def convolution_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Choose first parameters of a dense convolution: as many channels a tile as there are, up to 128, and positions for the rest."""
    layout = convolution_layout_of(kernel)
    half = layout.dtype in ("float16", "bfloat16")
    block_n = max(16, power_of_two(layout.n_channels)) if layout.folds else min(128, max(16, power_of_two(layout.n_channels)))
    block_m = min(128 if block_n <= 128 else 64, max(16, power_of_two(layout.n_positions)))
    fixed = layout.n_images * layout.n_groups * layout.n_phases * -(-layout.n_channels // block_n)
    while block_m > 32 and fixed * -(-layout.n_positions // block_m) < sms:
        block_m //= 2
    summed = layout.n_inputs if layout.n_inputs >= 16 else layout.n_inputs * layout.n_taps
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_K": min(64 if half else 32, max(16, power_of_two(summed))),
        SLICES: 1,
        "precision": "ieee" if half else "tf32x3",
        "accumulate": "direct" if half else "chunked",
        "num_warps": 8 if block_m * block_n >= 128 * 128 else 4,
        "num_stages": 3,
    }


def holds_channels(kernel: Kernel, parameters: Settings) -> bool:
    """Whether a tile has all channels where something looks along them."""
    layout = convolution_layout_of(kernel)
    return not layout.folds or int(parameters["BLOCK_N"]) >= layout.n_channels


def settled_convolution(parameters: Settings) -> Parameters:
    """Give settings of the same kernel the same parameters: sums are added as the digits need."""
    return {**parameters, **accumulated(str(parameters["precision"]))}


def _is_idle(knob: str, layout: ConvolutionLayout, split_float: SplitFloat | None) -> bool:
    """Whether the kernel is the same whatever a parameter is."""
    if knob == "precision":
        return layout.dtype != "float32"
    if knob == "accumulate":
        return split_float is not None
    return knob == WEIGHTS and not layout.weight.fixed


def convolution_fits(kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes a convolution's kernel and can run on the device."""
    layout = convolution_layout_of(kernel)
    split_float = SPLIT_FLOATS.get(str(parameters["precision"]))
    if _is_idle(knob, layout, split_float):
        return False
    block_m, block_n, block_k = int(parameters["BLOCK_M"]), int(parameters["BLOCK_N"]), int(parameters["BLOCK_K"])
    slices, each = int(parameters.get(SLICES, 1)), split_float.nbytes if split_float else ITEM_BYTES[layout.dtype]
    # most settings that do not fit are told by these numbers alone
    stages, shared = block_k * each * int(parameters["num_stages"]), sheet.shared_kib_per_block * 1024
    if (block_m + block_n) * stages > shared or not 8 <= slices * block_m * block_n // (32 * int(parameters["num_warps"])) <= 128:
        return False
    beyond = block_m > max(16, power_of_two(layout.n_positions)) or block_n > max(16, power_of_two(layout.n_channels))
    if beyond or not holds_channels(kernel, parameters):
        return False
    summed = split_convolution_of(kernel).n_channels if split_float else layout.n_inputs * layout.n_taps
    if block_k > max(16, power_of_two(summed)):
        return False
    if slices == 1:
        return True
    several = slices_in(kernel, slices, parts=split_float is not None)
    fits = (block_m * len(several.read) + block_n * several.convolution.size[0]) * stages <= shared
    return fits and can_share(several, parts=split_float is not None)
