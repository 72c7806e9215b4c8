"""The walk over a convolution's kernel: how many of its elements reach a position, where each finds its input, and whether there is any."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tools.codegen.ir.geometry import Convolution
from tools.codegen.templates.convolution.layout import ConvolutionLayout
from tools.codegen.templates.convolution.output_index import OutputIndex, wrapped
from tools.codegen.templates.shared.naming import Scope

BITS = 31
"""Kernel elements of which one number per position can say whether they find any input."""


@dataclass(frozen=True)
class KernelWalk:
    """Writes what one element of the kernel means for the positions of a tile."""

    convolution: Convolution
    plan: ConvolutionLayout
    places: OutputIndex

    @property
    def sign(self) -> str:
        """Which way the input moves as the kernel's elements go on."""
        return "-" if self.convolution.transposed else "+"

    def tap_counts(self, scope: Scope) -> str:
        """Write how many kernel elements reach a position; those of strided transposed dimensions depend on its remainder."""
        if not self.places.phased:
            return str(math.prod(self.convolution.size))
        factors = []
        for place, letter in enumerate(self.plan.letters):
            size = self.convolution.size[place]
            if not self._strided(place):
                factors.append(str(size))
                continue
            common, apart = self.places.congruence(place)
            count = f"({size - 1} - first_{letter} + {apart}) // {apart}"
            if common > 1:
                reached = f"({self.places.remainders()[letter]} + {self.convolution.padding[place]}) % {common} == 0"
                count = f"tl.where({reached}, {count}, 0)"
            scope.say(f"taps_{letter} = {count}")
            factors.append(f"taps_{letter}")
        return " * ".join(factors)

    def steps(self, loop: Scope) -> None:
        """Write how far along each dimension a kernel element is, and which of the weights it is."""
        rest: str = "tap"
        which: list[str] = []
        for place in range(len(self.plan.letters) - 1, -1, -1):
            letter, most = self.plan.letters[place], self.most(place)
            first = f"first_{letter}" if self._strided(place) else ""
            if most == 1:
                which.insert(0, first)
                continue
            if place == 0:
                loop.say(f"step_{letter} = {rest}")
            elif self._strided(place):
                # one remainder has an element more than another: both numbers are known, and dividing by them is a multiplication
                fewer = f"{rest} // {most - 1}" if most > 2 else rest
                loop.say(f"above_{letter} = tl.where(taps_{letter} == {most}, {rest} // {most}, {fewer})")
                loop.say(f"step_{letter} = {rest} - above_{letter} * taps_{letter}")
                rest = f"above_{letter}"
            else:
                loop.say(f"step_{letter} = {rest} % {most}")
                rest = f"{rest} // {most}"
            apart = self.places.congruence(place)[1] if first else 1
            which.insert(0, f"({first} + step_{letter}{f' * {apart}' if apart > 1 else ''})" if first else f"step_{letter}")
        if self.places.phased:
            loop.say(f"tap = {self._which(which)}")

    def inputs(self, loop: Scope, spread: str) -> None:
        """Write where a kernel element finds its input, along each dimension."""
        for place, letter in enumerate(self.plan.letters):
            step = f" {self.sign} {self._step(place, f'step_{letter}{spread}')}" if self.most(place) > 1 else ""
            loop.say(f"here_{letter} = at_{letter}{step}")

    def inside(self) -> Iterator[str]:
        """List the tests of `inputs`."""
        for place, letter in enumerate(self.plan.letters):
            if self._may_leave(place):
                yield from (f"(here_{letter} >= 0)", f"(here_{letter} < in_{letter})")

    def moved(self) -> str:
        """Write by how many pixels a kernel element moves all inputs; empty where there is one element."""
        text = ""
        for place, letter in enumerate(self.plan.letters):
            text = f"{wrapped(text)} * in_{letter}" if text else ""
            if self.most(place) > 1:
                step = self._step(place, f"step_{letter}")
                text = f"{text} + {step}" if text else step
        return text

    @property
    def marks(self) -> bool:
        """Whether one number per position can say which elements find input."""
        return math.prod(self.most(place) for place in self._leaving()) <= BITS

    def reach(self, scope: Scope) -> str:
        """Write a number per position whose bits say which elements find input, and return the last one's name; empty if all do."""
        name, width = "", 1
        for place in reversed(self._leaving()):
            letter, most = self.plan.letters[place], self.most(place)
            bits = f"{name} << (step * {width})" if width > 1 else f"{name} << step" if name else "1 << step"
            scope.say(f"reach_{letter} = tl.zeros([BLOCK_M, 1], tl.int32)")
            scope.say(f"for step in tl.static_range(0, {most}):")
            each = scope.nested()
            each.say(f"here_{letter} = at_{letter} {self.sign} {self._step(place, 'step')}")
            each.say(f"found = (here_{letter} >= 0) & (here_{letter} < in_{letter})")
            each.say(f"reach_{letter} = reach_{letter} | tl.where(found, {bits}, 0)")
            name, width = f"reach_{letter}", width * most
        return name

    def bit(self) -> str:
        """Write which bit of `reach` is the element's."""
        text = ""
        for place in self._leaving():
            letter, most = self.plan.letters[place], self.most(place)
            if most > 1:
                text = f"{wrapped(text)} * {most} + step_{letter}" if text else f"step_{letter}"
        return text or "0"

    def most(self, place: int) -> int:
        """Count the kernel elements along a dimension that one position sums, at most."""
        size = self.convolution.size[place]
        return -(-size // self.places.congruence(place)[1]) if self._strided(place) else size

    def _leaving(self) -> list[int]:
        return [place for place in range(len(self.plan.letters)) if self._may_leave(place)]

    def _may_leave(self, place: int) -> bool:
        """Whether a position may look outside of the input along a dimension."""
        return self.convolution.transposed or self.convolution.padding[place] > 0

    def _strided(self, place: int) -> bool:
        return self.places.phased and self.convolution.stride[place] > 1

    def _step(self, place: int, step: str) -> str:
        common = self.places.congruence(place)[0] if self._strided(place) else 1
        dilation = self.convolution.dilation[place] // common
        return f"{step} * {dilation}" if dilation > 1 else step

    def _which(self, parts: list[str]) -> str:
        """Write the number of a kernel element from its number along each dimension."""
        text = ""
        for size, part in zip(self.convolution.size, parts, strict=True):
            text = f"{wrapped(text)} * {size}" if text and size > 1 else text
            text = " + ".join(each for each in (text, part) if each)
        return text or "0"
