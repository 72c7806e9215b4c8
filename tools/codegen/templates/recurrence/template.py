"""The template of loops."""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.recurrence.emit import emit
from tools.codegen.templates.recurrence.forms import matrix_form_of
from tools.codegen.templates.recurrence.knobs import KNOBS, recurrence_defaults, recurrence_fits, refusal
from tools.codegen.templates.recurrence.launches import recurrence_launches
from tools.codegen.templates.recurrence.layout import RecurrenceLayout, recurrence_layout_of
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Template
from tools.records import HardwareSheet


class Recurrences(Template):
    """A loop over a dimension, with what its steps carry on the chip."""

    name = "recurrence"
    knobs = KNOBS
    function = "recurrence"
    takes_numbers = True

    def accepts(self, kernel: Kernel) -> bool:
        """Take what has a loop."""
        return kernel.recurrence is not None

    def layout(self, kernel: Kernel) -> RecurrenceLayout:
        """Lay the region out; a loop that is made chunk by chunk stands without the reductions around it, which leave steps alone."""
        layout = recurrence_layout_of(kernel)
        if kernel.reduced and matrix_form_of(kernel):
            raise LoweringError("a loop of matrices and the reductions around it do not share a kernel")
        return layout

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """By matrix products or scans where a loop allows it, with programs for all multiprocessors if there are so many sequences."""
        return recurrence_defaults(kernel, sms)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return recurrence_fits(kernel, parameters, knob, sheet)

    def refusal(self, kernel: Kernel, parameters: Settings) -> str:
        """Say where a loop is none of an algorithm's."""
        return refusal(kernel, parameters)

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernel and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """One launch."""
        return recurrence_launches(kernel, parameters, sheet)
