"""The template of tiles."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Pattern, Template
from tools.codegen.templates.tile.emit import emit
from tools.codegen.templates.tile.host import check_sizes
from tools.codegen.templates.tile.knobs import KNOBS, settled_tile, tile_defaults, tile_fits, tile_refusal
from tools.codegen.templates.tile.launches import tile_launches
from tools.codegen.templates.tile.layout import TileLayout
from tools.codegen.templates.tile.placement import tile_layout_of
from tools.records import HardwareSheet


class Tile(Template):
    """One loop nest over tiled axes that reads, reduces and writes anywhere."""

    name = "tile"
    knobs = KNOBS
    pattern = Pattern.REDUCTION
    takes_numbers = True

    def accepts(self, kernel: Kernel) -> bool:
        """Take what was lowered for it."""
        return kernel.general

    def layout(self, kernel: Kernel) -> TileLayout:
        """Lay the region out."""
        plan = tile_layout_of(kernel)
        check_sizes(plan)
        if kernel.then is not None:
            self.layout(kernel.then)
        return plan

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Tiles of about four elements a thread; short reductions held, long ones stepped along, few long ones shared."""
        return tile_defaults(kernel, sms)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return tile_fits(kernel, parameters, knob)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernels and the host function."""
        return emit(kernel, name, parameters)

    def is_plain(self, kernel: Kernel) -> bool:
        """Whether all reductions walk the same dimensions, each once; what is held whole stays with the program that holds it."""
        plan = tile_layout_of(kernel)
        return (plan.whole or len(plan.walked) <= 1) and plan.repeats == 1

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """One launch, two of a split reduction, and one that copies what is scattered to."""
        return tile_launches(kernel, parameters, sheet)

    def refusal(self, kernel: Kernel, parameters: Settings) -> str:
        """Say why a region cannot be written so."""
        return tile_refusal(kernel, parameters)

    def settled(self, parameters: Parameters, start: Parameters) -> Parameters:
        """Leave numbers that the algorithm does not read as they were first."""
        return settled_tile(parameters, start)
