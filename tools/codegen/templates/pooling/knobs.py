"""Parameters of a pooling: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.pooling.layout import fits_across, fits_pairs, fits_tile, fits_vec4, is_aligned, keeps_busy, tile_of
from tools.codegen.templates.shared.knob import WARPS, Knob, Parameters, Settings
from tools.records import ActionKind

WARP = 32
VEC4_ELEMENTS = 8
"""Elements a thread that makes four neighbours of a pooling starts with. Measured on an H200 on a prototype written by hand, of one to
eight warps and 8 or 16 elements: all within 8 %, the best of 2 to 8 warps (max_pool1d of 8 with a dilation of 3, avg_pool1d of 8)."""

KNOBS: Mapping[str, Knob] = {
    "algorithm": Knob(ActionKind.ALGORITHM, ("flat", "tile", "pairs", "vec4", "across")),
    "ELEMENTS": Knob(ActionKind.VECTORISATION, (1, 2, 4, 8, 16, 32)),
    "num_warps": WARPS,
}


def pooling_defaults(kernel: Kernel) -> Parameters:
    """Neighbours share most of their windows: few elements a program, so that they are in the cache together.

    In a 3x3 max pooling on an H200 a tile of one warp moved 81 % of the copy bandwidth, of four 44 % (L2 cleared by reading).
    """
    if fits_pairs(kernel):
        return {"algorithm": "pairs", "ELEMENTS": 8, "num_warps": 1}
    if fits_vec4(kernel) and is_aligned(kernel):
        for warps in (4, 2, 1):
            if keeps_busy(kernel, VEC4_ELEMENTS * WARP * warps):
                return {"algorithm": "vec4", "ELEMENTS": VEC4_ELEMENTS, "num_warps": warps}
    if fits_across(kernel):
        assert kernel.window is not None
        return {"algorithm": "across", "ELEMENTS": max(16, power_of_two(kernel.window.size[-1]) // (4 * WARP)), "num_warps": 4}
    tile = fits_tile(kernel)
    return {"algorithm": "tile" if tile else "flat", "ELEMENTS": 4 if tile else 2, "num_warps": 1 if tile else 4}


def pooling_fits(kernel: Kernel, parameters: Settings, knob: str) -> bool:
    """Whether changing `knob` changes the kernel and leaves a block of a sensible size."""
    algorithm, elements = parameters["algorithm"], int(parameters["ELEMENTS"])
    fits = {"tile": lambda kernel: tile_of(kernel) is not None, "pairs": fits_pairs, "vec4": fits_vec4, "across": fits_across}
    if knob == "algorithm" and algorithm != "flat" and not fits[str(algorithm)](kernel):
        return False
    if algorithm == "vec4" and elements < 4:
        return False
    if algorithm == "across":
        assert kernel.window is not None
        return kernel.window.size[-1] <= elements * WARP * int(parameters["num_warps"]) <= 8192
    return 64 <= elements * WARP * int(parameters["num_warps"]) <= 8192
