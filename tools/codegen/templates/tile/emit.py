"""The template of tiles: one loop nest, its outputs stored wherever they belong.

`registers` holds all that a reduction walks; `looped` steps along the axis whose reductions come last, once for each level of them and
once more for what is written along it; `split` gives that axis to several programs: a kernel for each level of reductions writes their
partial results, and the last one puts these together and writes the outputs, again in as many programs where they have the axis. What
waits for none of these reductions is written as they are made: means of rows and of columns take one pass.
"""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.tile.host import HostText
from tools.codegen.templates.tile.layout import TileLayout
from tools.codegen.templates.tile.nest import Nest, Stage
from tools.codegen.templates.tile.placement import tile_layout


def _stages(plan: TileLayout, parameters: Settings) -> list[tuple[Stage, int]]:
    """List the kernels, each with the reductions along the shared axis that stand before it."""
    if parameters["reduction"] != "split" or plan.looped is None:
        return [(Stage.WHOLE, 0)]
    levels = len(plan.levels[plan.looped])
    last = Stage.WRITE if plan.written_along else Stage.COMBINE
    return [*((Stage.PARTIAL, level) for level in range(levels)), (last, levels)]


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernels and the host function."""
    plan = tile_layout(kernel)
    buffers: dict[int, str] = {}
    nests = [Nest(plan, name, parameters, stage, level, buffers) for stage, level in _stages(plan, parameters)]
    texts = [nest.write() for nest in nests]
    host = HostText(plan, parameters, name, nests)
    return RegionText(
        name,
        tuple(access.ref for access in nests[0].reads),
        tuple(access.ref for access in nests[0].writes),
        "\n\n\n".join([*texts, "\n".join(host.lines())]),
        tuple(dict.fromkeys(helper for nest in nests for helper in nest.body.helpers)),
        tuple({name: number for nest in nests for name, number in nest.frame.given.items()}.values()),
    )
