"""The template of experts."""

from __future__ import annotations

from tools.codegen.ir.grouped import Grouped
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.products import Products
from tools.codegen.templates.experts.emit import emit
from tools.codegen.templates.experts.knobs import KNOBS, experts_defaults, experts_fit, grouped_of
from tools.codegen.templates.experts.launches import experts_launches, flops_of
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Template
from tools.records import HardwareSheet, OperatorFamily


class Experts(Template):
    """Products of rows with the matrices of the experts that they are sent to."""

    name = "experts"
    knobs = KNOBS
    function = "experts"

    def accepts(self, kernel: Kernel) -> bool:
        """Take what sends rows to experts."""
        return kernel.grouped is not None

    def layout(self, kernel: Kernel) -> Grouped:
        """Return the stages: they have been laid out when they were lowered."""
        return grouped_of(kernel)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Tiles by how many rows an expert gets on average."""
        return experts_defaults(kernel)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves other kernels that can run."""
        return experts_fit(kernel, parameters, knob, sheet)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernels and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """The sorting, the stages, and the sum."""
        return experts_launches(kernel, parameters, sheet)

    def products(self, kernel: Kernel) -> Products:
        """Count the products of all stages."""
        grouped = grouped_of(kernel)
        return Products(OperatorFamily.MATMUL, flops_of(grouped), grouped.stages[0].summed[0], grouped.value.meta.dtype)
