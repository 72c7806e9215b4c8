"""The template of tiles: one loop nest, its outputs stored wherever they belong.

`registers` holds all that a reduction walks; `looped` steps along the axis whose reductions come last, once for each level of them and
once more for what is written along it; `split` gives that axis to several programs: a kernel for each level of reductions writes their
partial results, and the last one puts these together and writes the outputs, again in as many programs where they have the axis. What
waits for none of these reductions is written as they are made: means of rows and of columns take one pass.
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.frame import RegionText, block
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
    host = HostText(plan, parameters, name, nests).lines()
    helpers = [helper for nest in nests for helper in nest.body.helpers]
    if kernel.then is not None:
        later = emit(kernel.then, f"{name}_of_long_runs", {**parameters, "COPIES": 1})
        if later.numbers:
            raise LoweringError("numbers that forward must give are not given to what follows")
        texts, helpers = [later.source, *texts], [*helpers, *later.helpers]
        known = {access.ref: access.name for access in (*nests[0].reads, *nests[0].writes)}
        host[-1:-1] = ["    " + line for line in block(later.function, [known[ref] for ref in later.inputs], "")]
    return RegionText(
        name,
        tuple(access.ref for access in nests[0].reads),
        tuple(access.ref for access in nests[0].writes),
        "\n\n\n".join([*texts, "\n".join(host)]),
        tuple(dict.fromkeys(helpers)),
        tuple({name: number for nest in nests for name, number in nest.frame.given.items()}.values()),
    )
