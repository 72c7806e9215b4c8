"""Where the positions of a convolution's result lie: in the result, by remainder where strides make several, and in the input."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tools.codegen.ir.geometry import Convolution
from tools.codegen.templates.convolution.layout import ConvolutionLayout


@dataclass(frozen=True)
class OutputIndex:
    """Writes the positions of one convolution's tiles."""

    convolution: Convolution
    plan: ConvolutionLayout

    @property
    def letters(self) -> str:
        """One letter for each spatial dimension."""
        return self.plan.letters

    @property
    def phased(self) -> bool:
        """Whether positions are taken by their remainders."""
        return self.plan.n_phases > 1

    @property
    def count(self) -> str:
        """Name the number of positions that the tiles of one remainder, or all tiles, share out."""
        return "n_places" if self.phased else "n_rows"

    def counts(self) -> list[str]:
        """Write how many positions have one remainder, along each dimension and in all."""
        if not self.phased:
            return []
        lines = []
        for letter, stride in zip(self.letters, self.convolution.stride, strict=True):
            lines.append(f"places_{letter} = " + (f"tl.cdiv(out_{letter}, {stride})" if stride > 1 else f"out_{letter}"))
        return [*lines, f"n_places = {' * '.join(f'places_{letter}' for letter in self.letters)}"]

    def write(self) -> list[str]:
        """Write where each position of the tile lies in the result, and where its sum starts in the input."""
        c, letters = self.convolution, self.letters
        rest, across = ("place", "places") if self.phased else ("read_m", "out")
        remainders, lines = self.remainders(), []
        if not self.phased:
            # positions beyond the last are not stored: they read what the last one reads
            lines.append("read_m = tl.minimum(off_m, n_rows - 1)")
        for place in range(len(letters) - 1, -1, -1):
            letter, stride = letters[place], c.stride[place]
            here = rest if place == 0 else f"{rest} % {across}_{letter}"
            rest = f"{rest} // {across}_{letter}"
            if letter in remainders:
                lines += self._first(place, letter, remainders[letter])
                here = f"{here} * {stride} + {remainders[letter]}"
            lines.append(f"off_{letter} = {here}")
        if self.phased:
            tests = " & ".join(f"(off_{letter} < out_{letter})" for letter in letters)
            lines += [f"mask_m = (place < n_places) & {tests}", f"off_m = {self.flat('off', 'out')}"]
        else:
            lines.append("mask_m = off_m < n_rows")
        return [*lines, *(f"at_{letter} = {self._start(place, letter)}" for place, letter in enumerate(letters))]

    def _start(self, place: int, letter: str) -> str:
        c = self.convolution
        padding, stride = c.padding[place], c.stride[place]
        if not c.transposed:
            return f"off_{letter}" + (f" * {stride}" if stride > 1 else "") + (f" - {padding}" if padding else "")
        text = f"off_{letter}" + (f" + {padding}" if padding else "")
        dilation = f" * {c.dilation[place]}" if c.dilation[place] > 1 else ""
        return f"({text} - first_{letter}{dilation}) // {stride}" if stride > 1 else text

    def _first(self, place: int, letter: str, remainder: str) -> list[str]:
        """Write the first element of the kernel that reaches positions of one remainder; the others follow at equal distances.

        Element k reaches position p where p + padding - k * dilation is a multiple of the stride: a congruence in k.
        """
        common, apart = self.congruence(place)
        reached = f"({remainder} + {self.convolution.padding[place]})"
        inverse = pow(self.convolution.dilation[place] // common, -1, apart)
        scaled = f"{reached} // {common}" if common > 1 else reached
        return [f"first_{letter} = {scaled}{f' * {inverse}' if inverse > 1 else ''} % {apart}"]

    def congruence(self, place: int) -> tuple[int, int]:
        """Tell which remainders any element of the kernel reaches (multiples of the first number), and how far apart those elements lie."""
        stride = self.convolution.stride[place]
        common = math.gcd(stride, self.convolution.dilation[place])
        return common, stride // common

    def remainders(self) -> dict[str, str]:
        """Write a position's remainder along each dimension that has several, by letter."""
        if not self.phased:
            return {}
        found, rest, left = {}, "phase", self.plan.n_phases
        for letter, stride in list(zip(self.letters, self.convolution.stride, strict=True))[::-1]:
            if stride > 1:
                left //= stride
                found[letter] = rest if left == 1 else f"{rest} % {stride}"
                rest = f"{rest} // {stride}"
        return found

    def flat(self, index: str, size: str) -> str:
        """Write one number for a position along all spatial dimensions."""
        text = f"{index}_{self.letters[0]}"
        for letter in self.letters[1:]:
            text = f"{wrapped(text)} * {size}_{letter} + {index}_{letter}"
        return text


def wrapped(text: str) -> str:
    """Put parentheses around what is several words and has none."""
    return f"({text})" if " " in text and not (text.startswith("(") and text.find(")") == len(text) - 1) else text
