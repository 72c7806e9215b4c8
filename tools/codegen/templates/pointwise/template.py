"""The template of pointwise regions."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.pointwise.emit import emit
from tools.codegen.templates.pointwise.knobs import KNOBS, pointwise_defaults, pointwise_fits
from tools.codegen.templates.pointwise.launches import pointwise_launches
from tools.codegen.templates.pointwise.layout import PointwiseLayout, pointwise_layout_of
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Pattern, Template
from tools.records import HardwareSheet


class Pointwise(Template):
    """One kernel, each element once."""

    name = "pointwise"
    knobs = KNOBS
    pattern = Pattern.ELEMENTWISE
    takes_numbers = True

    def accepts(self, kernel: Kernel) -> bool:
        """Take what no other template does."""
        return True

    def layout(self, kernel: Kernel) -> PointwiseLayout:
        """Lay the region out."""
        return pointwise_layout_of(kernel)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Two independent 16-byte loads of each operand a thread."""
        return pointwise_defaults(kernel)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return pointwise_fits(kernel, parameters, knob)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernel and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """One launch."""
        return pointwise_launches(kernel, parameters)
