"""The template of row regions: reductions, softmax, norms, scans."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.rows.emit import emit
from tools.codegen.templates.rows.knobs import KNOBS, row_defaults, rows_fit, rows_refusal, settled_rows
from tools.codegen.templates.rows.launches import row_launches
from tools.codegen.templates.rows.layout import RowLayout, row_layout_of
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Pattern, Template
from tools.codegen.templates.shared.work import emitted
from tools.records import HardwareSheet

MOST_REMADE = 1 << 18
"""Elements that all rows together may read again of what is spread over them: a launch of its own takes longer than that from the L2."""


class Rows(Template):
    """Reductions along rows, with what is pointwise before and after them."""

    name = "rows"
    knobs = KNOBS
    pattern = Pattern.REDUCTION
    takes_numbers = True

    def accepts(self, kernel: Kernel) -> bool:
        """Take what reduces along dimensions."""
        return bool(kernel.reduced)

    def layout(self, kernel: Kernel) -> RowLayout:
        """Lay the region out."""
        return row_layout_of(kernel)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Rows that fit are held in registers, longer ones walked, few long ones split over programs."""
        return row_defaults(kernel, sms)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return rows_fit(kernel, parameters, knob)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernels and the host function."""
        return emit(kernel, name, parameters)

    def is_plain(self, kernel: Kernel) -> bool:
        """Whether a row is made of elements of its own; what is spread over other rows is made again for each, if a launch takes longer."""
        plan, b = row_layout_of(kernel), kernel.builder
        every = [b.leaves_of(b.exprs[expr]) for expr in emitted(kernel)]
        return (
            any({*plan.rows, *plan.cols} <= leaves for leaves in every)
            or b.count((*plan.rows, *plan.cols))[0] <= MOST_REMADE
            or all({*plan.rows} <= b.leaves_of(b.exprs[expr]) for expr in emitted(kernel) if b.exprs[expr].reduces())
        )

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """One launch, or one a level and one that combines."""
        return row_launches(kernel, parameters, sheet)

    def refusal(self, kernel: Kernel, parameters: Settings) -> str:
        """Say why rows cannot be given to several programs."""
        return rows_refusal(kernel, parameters)

    def settled(self, parameters: Parameters, start: Parameters) -> Parameters:
        """Leave numbers that the algorithm does not read as they were first."""
        return settled_rows(parameters, start)
