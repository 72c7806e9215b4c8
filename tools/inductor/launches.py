"""How a kernel is launched: its grid and its configuration as Python text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tools.inductor.records import Launcher, RefusedError, WrittenKernel

_AXES = {
    "Grid1D": (("xnumel", "XBLOCK"),),
    "Grid2D": (("xnumel", "XBLOCK"), ("ynumel", "YBLOCK")),
    "Grid3D": (("xnumel", "XBLOCK"), ("ynumel", "YBLOCK"), ("znumel", "ZBLOCK")),
    "BatchMatmulGrid3D": (("znumel", "ZBLOCK"), ("ynumel", "YBLOCK"), ("xnumel", "XBLOCK")),
    "Grid2DWithYZOverflow": (("xnumel", "XBLOCK"), ("ynumel", "YBLOCK")),
    "MixOrderReductionGrid": (("xnumel", "RSPLIT_SIZE"),),
    "CooperativeReductionGrid": (("", "RSPLIT"), ("xnumel", "XBLOCK")),
    "SplitScanGrid": (("r0_numel", "R0_BLOCK"), ("xnumel", "")),
}
"""Grids of Inductor's: the number of elements and the block of each axis; one without a number has as many programs as its block says."""
MAX_Y = 65535
"""Programs that a device takes along the second axis."""
OPTIONS = ("num_warps", "num_stages")


def largest(kernel: WrittenKernel) -> Launcher:
    """Find the configuration with the largest blocks: the fewest programs, which is what an interpreter's time is made of."""
    return max(kernel.launchers, key=lambda one: math.prod(value for name, value in one.items() if name not in OPTIONS))


def grid_text(kernel: WrittenKernel, sizes: Mapping[str, int], launcher: Launcher) -> str:
    """Write the grid of one launch under a configuration: `(triton.cdiv(4096, 128),)`."""
    grid = kernel.grid
    if kernel.programs:
        return repr(kernel.programs)
    if grid not in _AXES:
        raise RefusedError(f"a kernel has the grid {grid or 'of a template'}, which has no plain form here")
    axes = [_axis(sizes, launcher, size, block) for size, block in _AXES[grid]]
    if grid == "Grid2DWithYZOverflow":
        count = -(-sizes["ynumel"] // launcher.get("YBLOCK", 1))
        layers = -(-count // MAX_Y)
        axes = [axes[0], str(-(-count // layers)), str(layers)]
    return f"({', '.join(axes)},)" if len(axes) == 1 else f"({', '.join(axes)})"


def _axis(sizes: Mapping[str, int], launcher: Launcher, size: str, block: str) -> str:
    if not size:
        return str(launcher.get(block, 1))
    # a block of one is written too: a tuner that changes it changes the grid
    return f"triton.cdiv({sizes[size]}, {launcher[block]})" if block in launcher else str(sizes[size])


def configuration(launcher: Launcher, parameters: tuple[str, ...]) -> dict[str, int]:
    """List the keywords of a launch: blocks that the kernel has, and how many warps and stages."""
    return {name: value for name, value in launcher.items() if name in parameters or name in OPTIONS}


def tuned_grid_text(grid: str, sizes: Mapping[str, int]) -> str:
    """Write the grid of a kernel whose blocks are chosen on the device: a function of the configuration; empty where there is none."""
    if grid not in ("Grid1D", "Grid2D", "Grid3D"):
        return ""
    axes = [f'triton.cdiv({sizes[size]}, meta["{block}"])' for size, block in _AXES[grid]]
    return f"lambda meta: ({', '.join(axes)}{',' * (len(axes) == 1)})"
