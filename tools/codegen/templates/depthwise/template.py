"""The template of depthwise convolutions."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.products import Products
from tools.codegen.ir.sizes import product
from tools.codegen.templates.depthwise.emit import emit
from tools.codegen.templates.depthwise.knobs import KNOBS, depthwise_defaults, depthwise_fits
from tools.codegen.templates.depthwise.launches import depthwise_launches, turning_launches
from tools.codegen.templates.depthwise.layout import depthwise_layout
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.axis_order import laid_out_alone
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Pattern, Template
from tools.records import HardwareSheet, OperatorFamily


class DepthwiseConvolution(Template):
    """Convolutions of each channel by itself, and their transposes."""

    name = "depthwise"
    knobs = KNOBS
    pattern = Pattern.OUT_FUSABLE

    def accepts(self, kernel: Kernel) -> bool:
        """Take what has a depthwise convolution."""
        return kernel.depthwise is not None

    def layout(self, kernel: Kernel) -> tuple[tuple[Access, ...], tuple[Axis, ...]]:
        """Lay the region out."""
        return laid_out_alone(kernel, "a convolution", depthwise_layout)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Lanes as wide as leave few idle."""
        return depthwise_defaults(kernel)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return depthwise_fits(kernel, parameters)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernel and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """One launch, after a copy of what comes turned."""
        return (*depthwise_launches(kernel, parameters), *turning_launches(kernel, sheet))

    def products(self, kernel: Kernel) -> Products:
        """Products on the ordinary cores, one channel with another."""
        assert kernel.depthwise is not None
        atoms = kernel.builder.atoms
        results = product((atoms.size(atom) for atom in atoms.leaves(a for dim in kernel.depthwise.dims for a in dim)), atoms.traces)[0]
        return Products(OperatorFamily.CONVOLUTION, 2.0 * results * math.prod(kernel.depthwise.size), 0, kernel.builder.loads[0].meta.dtype)
