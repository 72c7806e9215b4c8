"""How a convolution's input and weights are read as split floats: short parts, their channels last.

There are as many channels as tensor cores and wide loads want. Each image has one power of two, and so have the weights of each channel of
the result: all that is summed for one element is scaled alike. Where channels are few, the elements of a kernel's row become channels: a
row of positions then reads one stretch of memory. The channels of a group lie together and are filled up together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tools.codegen.ir.geometry import Convolution
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.convolution.layout import ConvolutionLayout, convolution_layout_of
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.frame import block
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.prepack import Pass

LEAST_CHANNELS = 16
"""Input channels below which a step of the sum takes elements of several kernel positions."""
MULTIPLE = 16
"""Channels are filled up with zeros to a multiple of it, so that each step's loads are as wide as they can be."""


@dataclass(frozen=True)
class SplitConvolution:
    """What the pass makes of one convolution's input."""

    convolution: Convolution
    """As written."""
    plan: ConvolutionLayout
    n_parts: int = 2
    """Parts of one element."""

    @property
    def handed(self) -> str:
        """Name the power of two with which the input comes as halves; empty where it is brought to halves here."""
        place = self.convolution.scale
        return self.plan.accesses[place].name if place >= 0 else ""

    @cached_property
    def unfolds(self) -> bool:
        """Whether the elements of a kernel's row become channels."""
        return self.plan.n_inputs < LEAST_CHANNELS and not self.convolution.transposed and self.convolution.size[-1] > 1

    @cached_property
    def read(self) -> Convolution:
        """The convolution that the kernel computes of what the pass made."""
        if not self.unfolds:
            return self.convolution
        c = self.convolution
        size, stride, dilation = ((*numbers[:-1], 1) for numbers in (c.size, c.stride, c.dilation))
        return replace(c, size=size, stride=stride, dilation=dilation, padding=(*c.padding[:-1], 0))

    @cached_property
    def n_channels(self) -> int:
        """Channels of one group after the pass."""
        channels = self.plan.n_inputs * (self.convolution.size[-1] if self.unfolds else 1)
        return -(-channels // MULTIPLE) * MULTIPLE

    @cached_property
    def n_taps(self) -> int:
        """Elements of the kernel that one position of the result sums after the pass, at most."""
        return self.plan.n_taps // (self.convolution.size[-1] if self.unfolds else 1)

    @cached_property
    def growth(self) -> float:
        """Elements that the pass writes over those it reads."""
        if not self.unfolds:
            return self.n_channels / self.plan.n_inputs
        return self.n_channels / self.plan.n_inputs / self.convolution.stride[-1]

    @cached_property
    def weight_growth(self) -> float:
        """The same of the weights."""
        return self.n_channels / self.plan.n_inputs / (self.convolution.size[-1] if self.unfolds else 1)

    def host(self, source: str, weight: str, sources: list[str], weights: list[str], *, packed: bool) -> list[str]:
        """Write the host's call of the passes; of the images alone where the weights are packed."""
        if self.handed:
            return self._as_it_lies(source, weight, sources[0], weights, packed=packed)
        made = sources if packed else [*sources, *weights]
        arguments = [source, *([] if packed else [weight]), *self._arguments(images=True, weights=not packed)]
        shared = f" // {self.plan.n_groups}" if self.plan.n_groups > 1 else ""
        lines = block(f"{', '.join(made)} = {'packed_image_halves' if packed else 'image_halves'}", arguments, "")
        lines.append(f"n_channels = {sources[0]}.shape[2]{shared}")
        return [*lines, *(["in_w = out_w"] if self.unfolds else [])]

    def _as_it_lies(self, source: str, weight: str, halves: str, weights: list[str], *, packed: bool) -> list[str]:
        """Write how the host sees halves that lie channels last already, and how weights are brought to halves."""
        order = ", ".join(str(place) for place in (0, *range(2, 2 + len(self.plan.letters)), 1))
        shared = f" // {self.plan.n_groups}" if self.plan.n_groups > 1 else ""
        given = ", ".join([weight, *self._arguments(images=False, weights=True)])
        return [
            f"{halves} = {source}.permute({order}).reshape({source}.shape[0], -1, {source}.shape[1])",
            *([] if packed else [f"{', '.join(weights)} = packed_weight_halves({given})"]),
            f"n_channels = {source}.shape[1]{shared}",
            f'assert {source}[0].numel() < 2**31, "offsets within an image are 32-bit"',
        ]

    def packing(self, access: Access, weights: list[str]) -> Pass:
        """Write the pass over the weights alone."""
        call = f"packed_weight_halves({', '.join([access.name, *self._arguments(images=False, weights=True)])})"
        return Pass(access, f"{', '.join(weights)} = {call}", tuple(weights))

    def _arguments(self, *, images: bool, weights: bool) -> list[str]:
        """Write what the passes are told of the convolution, where it is not the usual."""
        c = self.convolution
        arguments = []
        if self.unfolds:
            usual = {"stride": 1, "dilation": 1, "padding": 0}
            numbers = {"stride": c.stride[-1], "dilation": c.dilation[-1], "padding": c.padding[-1]} if images else {}
            arguments += [str(c.size[-1]), *(f"{name}={value}" for name, value in numbers.items() if value != usual[name])]
        arguments += [f"groups={self.plan.n_groups}"] if self.plan.n_groups > 1 else []
        arguments += ["transposed=True"] if c.transposed and weights else []
        # what is handed on has the channels that it has
        arguments += ["multiple=1"] if self.handed and weights else []
        return [*arguments, *([f"parts={self.n_parts}"] if self.n_parts != 2 else [])]


@kept
def split_convolution_of(kernel: Kernel) -> SplitConvolution:
    """How a kernel's convolution is read in two parts or in one: what its sizes say is the same of both."""
    assert kernel.convolution is not None
    return SplitConvolution(kernel.convolution, convolution_layout_of(kernel))
