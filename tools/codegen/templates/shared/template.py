"""What a template is: one way of writing a whole region as kernels, and all that others ask about it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.products import Products
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Knob, Parameters, Settings, Value
from tools.records import HardwareSheet, OperatorFamily


class Pattern(StrEnum):
    """What a template's kernels can do beside their own work; the patterns are those of TVM's fusion."""

    ELEMENTWISE = "elementwise"
    """Each element by itself."""
    REDUCTION = "reduction"
    """It may read its input more than once: what is done to each element of that first is its prologue."""
    OUT_FUSABLE = "out-elementwise-fusable"
    """Its epilogue can be the prologue of the reduction that comes next."""
    OPAQUE = "opaque"
    """It has an epilogue, but takes no other kernel's work."""


class Template(Protocol):
    """One template; what has a body here is what most of them answer.

    A template's own class, in its own folder, says the rest; `registry.TEMPLATES` lists one object of each.
    """

    name: str
    """As schedules have it: `pointwise`, `rows`, `matmul`, …"""
    knobs: Mapping[str, Knob]
    """Its parameters."""
    pattern: Pattern = Pattern.OPAQUE
    takes_numbers: bool = False
    """Whether its host functions can be given numbers that none of their tensors' shapes tells."""
    function: str = ""
    """What its host functions are called; otherwise the region's operators say it."""

    @abstractmethod
    def accepts(self, kernel: Kernel) -> bool:
        """Whether a region is for this template: the first that accepts it has to lay it out."""

    @abstractmethod
    def layout(self, kernel: Kernel) -> object:
        """Lay a region out in memory; raises LoweringError with the reason where that cannot be done."""

    @abstractmethod
    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Choose first parameters from the shapes as written and the number of multiprocessors."""

    @abstractmethod
    def fits(self, kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether changing `knob` to what `parameters` say changes the kernel and can run on the device."""

    @abstractmethod
    def emit(self, kernel: Kernel, name: str, parameters: Settings) -> RegionText:
        """Write the kernels and the host function `name`."""

    def is_plain(self, kernel: Kernel) -> bool:
        """Whether its kernel makes nothing twice, so that operators share it without asking how long that takes."""
        return True

    def launches(self, kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """Describe the launches of one call; the cost model and the tuner leave a template alone that does not."""
        return ()

    def refusal(self, kernel: Kernel, parameters: Settings) -> str:
        """Say why it cannot be emitted with these parameters; nothing where it can."""
        return ""

    def settled(self, parameters: Parameters, start: Parameters) -> Parameters:
        """Make settings of the same kernel alike: what others leave idle is as in `start`."""
        return parameters

    def steps(self, kernel: Kernel, parameters: Parameters, start: Parameters, name: str, value: Value) -> tuple[Parameters, ...]:
        """List the settings that giving one parameter another value leads to."""
        return ({**parameters, name: value},)

    def products(self, kernel: Kernel) -> Products:
        """Say what products a region does, for what a library's kernels would take."""
        return Products(OperatorFamily.POINTWISE, 0.0, 0, kernel.builder.loads[0].meta.dtype)

    def weights(self, kernel: Kernel) -> tuple[Access, ...]:
        """List the operands that may be prepacked where they are fixed parameters."""
        return ()

    def prepacks(self, kernel: Kernel, parameters: Settings) -> bool:
        """Whether these parameters leave a pass over weights to be done beforehand."""
        return False
