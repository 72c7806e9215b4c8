"""The template of dense convolutions."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.products import DenseConvolution, Products
from tools.codegen.templates.convolution.emit import emit
from tools.codegen.templates.convolution.knobs import KNOBS, convolution_defaults, convolution_fits, holds_channels, settled_convolution
from tools.codegen.templates.convolution.launches import convolution_launches
from tools.codegen.templates.convolution.layout import ConvolutionLayout, convolution_layout_of
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.axis_order import laid_out_alone
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Pattern, Template
from tools.records import HardwareSheet, OperatorFamily


class DenseConvolutions(Template):
    """Convolutions of all channels or of groups, and their transposes, as an implicit GEMM."""

    name = "convolution"
    knobs = KNOBS
    pattern = Pattern.OUT_FUSABLE

    def accepts(self, kernel: Kernel) -> bool:
        """Take what has a dense convolution."""
        return kernel.convolution is not None

    def layout(self, kernel: Kernel) -> ConvolutionLayout:
        """Lay the region out."""
        return laid_out_alone(kernel, "a convolution", convolution_layout_of, lambda plan: (plan.axes[-1].atoms,), folds=True)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """As many channels a tile as there are, up to 128."""
        return convolution_defaults(kernel, sms)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return convolution_fits(kernel, parameters, knob, sheet)

    def refusal(self, kernel: Kernel, parameters: Settings) -> str:
        """A program makes all channels along which something looks."""
        return "" if holds_channels(kernel, parameters) else "what looks along all channels needs them in one tile: a larger BLOCK_N"

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernels and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """The implicit GEMM, and the passes that bring its operands to channels last."""
        return convolution_launches(kernel, parameters, sheet)

    def settled(self, parameters: Parameters, start: Parameters) -> Parameters:
        """Add sums as the digits need."""
        return settled_convolution(parameters)

    def products(self, kernel: Kernel) -> Products:
        """Count multiplications and additions, and what a library would be asked for."""
        plan, asked = convolution_layout_of(kernel), kernel.convolution
        assert asked is not None
        positions, summed = plan.n_images * plan.n_phases * plan.n_positions, plan.n_inputs * plan.n_taps
        dense = DenseConvolution(positions, plan.n_groups, plan.n_channels, plan.n_inputs, math.prod(asked.size), asked.transposed)
        return Products(OperatorFamily.CONVOLUTION, 2.0 * positions * plan.n_channels * summed, summed, plan.dtype, dense)

    def weights(self, kernel: Kernel) -> tuple[Access, ...]:
        """The convolution's own."""
        return (convolution_layout_of(kernel).weight,)

    def prepacks(self, kernel: Kernel, parameters: Settings) -> bool:
        """Weights are brought to channels last in any case."""
        return True
