"""The template of matrix products."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.products import Products
from tools.codegen.templates.matmul.emit import emit
from tools.codegen.templates.matmul.knobs import KNOBS, matmul_defaults, matmul_fits, settled_matmul, steps_of_matmul
from tools.codegen.templates.matmul.launches import matmul_launches
from tools.codegen.templates.matmul.layout import MatmulLayout, matmul_layout_of
from tools.codegen.templates.matmul.legality import holds_columns, packable_operands
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.axis_order import laid_out_alone
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings, Value
from tools.codegen.templates.shared.template import Pattern, Template
from tools.records import HardwareSheet, OperatorFamily


class Matmul(Template):
    """A matrix product, or a batch of them, with an epilogue."""

    name = "matmul"
    knobs = KNOBS
    pattern = Pattern.OUT_FUSABLE
    takes_numbers = True

    def accepts(self, kernel: Kernel) -> bool:
        """Take what has a product."""
        return kernel.contraction is not None

    def layout(self, kernel: Kernel) -> MatmulLayout:
        """Lay the region out."""
        return laid_out_alone(kernel, "a product", matmul_layout_of, folds=True)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Tiles as large as leave no multiprocessor idle; split-K where they are few."""
        return matmul_defaults(kernel, sms)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return matmul_fits(kernel, parameters, knob, sheet)

    def refusal(self, kernel: Kernel, parameters: Settings) -> str:
        """A program makes all columns along which something looks."""
        held = holds_columns(matmul_layout_of(kernel), parameters)
        return "" if held else "what looks along all columns needs them in one program's tile: a larger BLOCK_N, no shared sums"

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernels and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """The product, passes before it, and the sum of split tiles after it."""
        return matmul_launches(kernel, parameters, sheet)

    def settled(self, parameters: Parameters, start: Parameters) -> Parameters:
        """Add sums as the digits need; leave what split floats do not read as it was first."""
        return settled_matmul(parameters, start)

    def steps(self, kernel: Kernel, parameters: Parameters, start: Parameters, name: str, value: Value) -> tuple[Parameters, ...]:
        """Settle all parameters of operand-stationary programs at once."""
        return steps_of_matmul(kernel, parameters, start, name, value)

    def products(self, kernel: Kernel) -> Products:
        """Count multiplications and additions."""
        plan = matmul_layout_of(kernel)
        return Products(OperatorFamily.MATMUL, 2.0 * plan.n_batch * plan.n_rows * plan.n_cols * plan.n_inner, plan.n_inner, plan.dtype)

    def weights(self, kernel: Kernel) -> tuple[Access, ...]:
        """Either operand may be a weight; the step that packs it is given no numbers."""
        plan = matmul_layout_of(kernel)
        return () if kernel.builder.given else (plan.left, plan.right)

    def prepacks(self, kernel: Kernel, parameters: Settings) -> bool:
        """Whether an operand that is copied or split is a weight."""
        return not kernel.builder.given and bool(packable_operands(matmul_layout_of(kernel), parameters))
