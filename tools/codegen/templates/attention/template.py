"""The template of attention."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.products import Products
from tools.codegen.templates.attention.emit import emit
from tools.codegen.templates.attention.knobs import KNOBS, attention_defaults, attention_fits, refusal
from tools.codegen.templates.attention.launches import attention_launches
from tools.codegen.templates.attention.layout import AttentionLayout, attention_layout_of
from tools.codegen.templates.shared.axis_order import laid_out_alone
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Template
from tools.records import HardwareSheet, OperatorFamily


class FusedAttention(Template):
    """Two products with a softmax or nothing between them: scores stay on the chip."""

    name = "attention"
    knobs = KNOBS
    function = "attention"
    takes_numbers = True

    def accepts(self, kernel: Kernel) -> bool:
        """Take what has a product of weights and values."""
        return kernel.attention is not None

    def layout(self, kernel: Kernel) -> AttentionLayout:
        """Lay the region out."""
        return laid_out_alone(kernel, "an attention", attention_layout_of, AttentionLayout.read_along)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Heads held whole as far as shared memory goes."""
        return attention_defaults(kernel, sms)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return attention_fits(kernel, parameters, knob, sheet)

    def refusal(self, kernel: Kernel, parameters: Settings) -> str:
        """Splits need a softmax, and computed operands whole heads."""
        return refusal(kernel, parameters)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernel and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """One launch."""
        return attention_launches(kernel, parameters, sheet)

    def products(self, kernel: Kernel) -> Products:
        """Count all products; to the library an attention of float32 is two products and a softmax."""
        plan = attention_layout_of(kernel)
        n_inner = sum(each.n_inner for each in plan.products)
        flops = 2.0 * plan.n_outer * plan.n_rows * plan.n_cols * (n_inner + plan.n_wide)
        return Products(OperatorFamily.MATMUL, flops, n_inner, plan.dtype)
