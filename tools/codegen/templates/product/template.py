"""The template of products whose operands are computed on their way, and of several products."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.products import Products
from tools.codegen.templates.product.emit import emit
from tools.codegen.templates.product.knobs import KNOBS, product_defaults, product_fits
from tools.codegen.templates.product.launches import product_launches
from tools.codegen.templates.product.layout import ProductLayout, product_layout_of
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Pattern, Template
from tools.records import HardwareSheet, OperatorFamily


class FusedProducts(Template):
    """Products that share rows and columns, with operands that are computed in the loop over the sum."""

    name = "product"
    knobs = KNOBS
    pattern = Pattern.OUT_FUSABLE
    takes_numbers = True

    def accepts(self, kernel: Kernel) -> bool:
        """Take what has several products, or one with an operand that is not read as it is."""
        return kernel.contraction is not None and (bool(kernel.further) or kernel.computes_operands)

    def layout(self, kernel: Kernel) -> ProductLayout:
        """Lay the region out."""
        return product_layout_of(kernel)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Tiles as large as leave no multiprocessor idle."""
        return product_defaults(kernel, sms)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return product_fits(kernel, parameters, knob, sheet)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernels and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """The tiles, and the sum of split ones."""
        return product_launches(kernel, parameters, sheet)

    def products(self, kernel: Kernel) -> Products:
        """Count multiplications and additions, in the dtype of the first product."""
        plan = product_layout_of(kernel)
        flops = 2.0 * plan.n_batch * plan.n_rows * plan.n_cols * sum(plan.n_inner)
        return Products(OperatorFamily.MATMUL, flops, max(plan.n_inner), kernel.contractions[0].dtype)
