"""The template of poolings."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.pooling.emit import emit
from tools.codegen.templates.pooling.knobs import KNOBS, pooling_defaults, pooling_fits
from tools.codegen.templates.pooling.launches import pooling_launches
from tools.codegen.templates.pooling.layout import pooling_layout
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.axis_order import laid_out_alone
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Template
from tools.records import HardwareSheet


class Pooling(Template):
    """A window that moves over spatial dimensions: maxima and means."""

    name = "pooling"
    knobs = KNOBS

    def accepts(self, kernel: Kernel) -> bool:
        """Take what has a window."""
        return kernel.window is not None

    def layout(self, kernel: Kernel) -> tuple[tuple[Access, ...], Axis]:
        """Lay the region out."""
        return laid_out_alone(kernel, "a pooling", pooling_layout)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Few elements a program, so that neighbours find one another in the cache."""
        return pooling_defaults(kernel)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return pooling_fits(kernel, parameters, knob)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernel and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """One launch."""
        return pooling_launches(kernel, parameters)
