"""The template of recurrent layers."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.products import Products
from tools.codegen.ir.recurrent import Recurrent
from tools.codegen.templates.recurrent.emit import emit
from tools.codegen.templates.recurrent.knobs import HELD, KNOBS, recurrent_defaults, recurrent_fits, recurrent_of, refusal
from tools.codegen.templates.recurrent.launches import flops_of, recurrent_launches
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Template
from tools.records import HardwareSheet, OperatorFamily


class RecurrentLayers(Template):
    """All layers of an LSTM, a GRU or an RNN on padded sequences."""

    name = "recurrent"
    knobs = KNOBS
    function = "recurrent"

    def accepts(self, kernel: Kernel) -> bool:
        """Take recurrent layers."""
        return kernel.recurrent is not None

    def layout(self, kernel: Kernel) -> Recurrent:
        """Return the layers: their tensors are read as they lie."""
        return recurrent_of(kernel)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Few units a program, so that the layers' programs fill the device."""
        return recurrent_defaults(kernel, sms)

    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether the change leaves another kernel that can run."""
        return recurrent_fits(kernel, parameters, knob, sheet)

    def refusal(self, kernel: Kernel, parameters: Settings) -> str:
        """Say why there are no steps of several layers at once."""
        return refusal(kernel, parameters)

    def settled(self, parameters: Parameters, start: Parameters) -> Parameters:
        """Weights that are there at once are not walked."""
        return {**parameters, **{name: start[name] for name in ("BLOCK_K", "num_stages")}} if parameters["ahead"] == HELD else parameters

    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernel and the host function."""
        return emit(kernel, name, parameters)

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """The products of all inputs, and a launch for each wave."""
        return recurrent_launches(kernel, parameters, sheet)

    def products(self, kernel: Kernel) -> Products:
        """Count the products of all layers and steps."""
        recurrent = recurrent_of(kernel)
        return Products(OperatorFamily.RECURRENT, flops_of(recurrent), recurrent.hidden[0], recurrent.meta.dtype)
