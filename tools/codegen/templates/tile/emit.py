"""The template of tiles: one loop nest, its outputs stored wherever they belong.

`registers` holds all that a reduction walks; `looped` steps along the axis whose reductions come last, once for each level of them and
once more for what is written along it; `split` gives that axis to several programs, and a second kernel combines their partial results.
"""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.tile.host import HostText
from tools.codegen.templates.tile.layout import tile_layout
from tools.codegen.templates.tile.nest import Nest, Stage


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernels and the host function."""
    plan = tile_layout(kernel)
    stages = (Stage.PARTIAL, Stage.COMBINE) if parameters["reduction"] == "split" else (Stage.WHOLE,)
    nests = [Nest(plan, name, parameters, stage) for stage in stages]
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
