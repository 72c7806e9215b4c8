"""Several slices of a convolution's result made by one program: neighbours along the first dimension share most of what they read.

A kernel of three makes four slices of six of the input, where four programs of one slice each read twelve; the weights are read once for
all of them. Each slice has a sum of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tools.codegen.ir.geometry import Convolution
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.convolution.layout import ConvolutionLayout, convolution_layout_of
from tools.codegen.templates.convolution.split_float import LEAST_CHANNELS, split_convolution_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.layout_cache import kept

SLICES = "SLICES"
"""Name of the parameter."""


@dataclass(frozen=True)
class Slices:
    """The slices of one program, and what they share."""

    convolution: Convolution
    """As the kernel reads it."""
    plan: ConvolutionLayout
    count: int

    @property
    def letter(self) -> str:
        """Name the dimension along which they lie side by side."""
        return self.plan.letters[0]

    @cached_property
    def read(self) -> tuple[int, ...]:
        """List the slices of the input that they read, from the first of all on."""
        return tuple(sorted({place for _, _, place in self.sums()}))

    @property
    def rest(self) -> Convolution:
        """The convolution of one slice of the input with one slice of the kernel."""
        c = self.convolution
        return replace(c, size=(1, *c.size[1:]), padding=(0, *c.padding[1:]))

    @property
    def taps(self) -> int:
        """Elements of a slice of the kernel."""
        return math.prod(self.convolution.size[1:])

    def sums(self) -> Iterator[tuple[int, int, int]]:
        """Go through what is added up: a slice of the result, a slice of the kernel, and the slice of the input that they meet in.

        Those of one slice of the kernel follow each other, so that sums do not wait for themselves.
        """
        c = self.convolution
        for element in range(c.size[0]):
            for each in range(self.count):
                yield each, element, each * c.stride[0] + element * c.dilation[0]

    def tiles(self) -> list[str]:
        """Write how many tiles the positions of the result make."""
        tiles = f"tiles_m = tl.cdiv(out_{self.letter}, {SLICES}) * tiles_p"
        return [f"n_plane = {self.plane('out')}", "tiles_p = tl.cdiv(n_plane, BLOCK_M)", tiles]

    def tile_count(self, parameters: Settings) -> str:
        """Write the same for the host."""
        return f"triton.cdiv(out_{self.letter}, {self.count}) * triton.cdiv({self.plane('out')}, {parameters['BLOCK_M']})"

    def walk(self) -> list[str]:
        """Write a loop over the slices of the result, once all is summed."""
        return [f"sums = ({', '.join(f'acc_{each}' for each in range(self.count))})", f"for each in tl.static_range(0, {SLICES}):"]

    def each(self) -> list[str]:
        """Write which sum that of a slice is, and where its positions lie in the result."""
        at = f"off_{self.letter} + each"
        inside = f"tl.where({at} < out_{self.letter}, place < n_plane, False)"
        return ["acc = sums[each]", f"off_m = ({at}) * n_plane + place", f"mask_m = {inside}"]

    def positions(self) -> list[str]:
        """Write where a program's positions lie in each of its slices, and where their sums start in the input."""
        c, letters, first = self.convolution, self.plan.letters, self.letter
        lines = ["read_m = tl.minimum(place, n_plane - 1)"]
        rest = "read_m"
        for place in range(len(letters) - 1, 0, -1):
            letter = letters[place]
            lines.append(f"off_{letter} = {rest}" + (f" % out_{letter}" if place > 1 else ""))
            rest = f"{rest} // out_{letter}"
        lines.append(f"off_{first} = tile // tiles_n // tiles_p * {SLICES}")
        for place, letter in enumerate(letters):
            stride, padding = c.stride[place], c.padding[place]
            text = f"off_{letter}{f' * {stride}' if stride > 1 else ''}{f' - {padding}' if padding else ''}"
            # the same for all positions, as a tile of one: in the interpreter, what a number is compared with is no mask
            lines.append(f"at_{letter} = {text}{' + tl.zeros([1, 1], tl.int32)' if place == 0 else ''}")
        return lines

    def inside(self, place: int) -> str:
        """Write whether a slice of the input is one."""
        at = f"at_{self.letter}{f' + {place}' if place else ''}"
        before = f"({at} >= 0) & " if place < self.convolution.padding[0] else ""
        return f"{before}({at} < in_{self.letter})"

    def plane(self, kind: str) -> str:
        """Write how many positions a slice of the input (`in`) or of the result (`out`) has."""
        return " * ".join(f"{kind}_{letter}" for letter in self.plan.letters[1:])


def slices_of(convolution: Convolution, plan: ConvolutionLayout, parameters: Settings) -> Slices | None:
    """Make the slices of a setting; none where a program makes positions one after the other."""
    count = int(parameters.get(SLICES, 1))
    return Slices(convolution, plan, count) if count > 1 else None


@kept
def _made(kernel: Kernel) -> dict[tuple[int, bool], Slices]:
    """Slices of a kernel's convolution that were asked for, by their number and by whether they are read as parts."""
    return {}


def slices_in(kernel: Kernel, count: int, *, parts: bool) -> Slices:
    """So many slices of a kernel's convolution, read as it is written or as parts; made once."""
    made, key = _made(kernel), (count, parts)
    if key not in made:
        assert kernel.convolution is not None
        read = split_convolution_of(kernel).read if parts else kernel.convolution
        made[key] = Slices(read, convolution_layout_of(kernel), count)
    return made[key]


def can_share(slices: Slices, *, parts: bool) -> bool:
    """Whether slices of the result share any of the input; those of a transposed convolution are not made together."""
    read, plan = slices.convolution, slices.plan
    few = plan.n_inputs < LEAST_CHANNELS and not parts
    if read.transposed or few or len(read.size) < 2 or plan.n_slices < slices.count:
        return False
    return len(slices.read) < slices.count * read.size[0]
