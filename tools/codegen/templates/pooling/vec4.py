"""The text of `vec4`: how four neighbouring windows, one element apart, are made of blocks of four elements that are each loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tools.codegen.ir.geometry import PoolKind, Window

OWN = range(4)
"""Neighbouring results that a lane makes; blocks are as many elements."""


def blocks_along(window: Window) -> list[int]:
    """List which blocks of a row make four neighbouring windows, counted from the block of their own places."""
    first, last = -window.padding[-1], (window.size[-1] - 1) * window.dilation[-1] - window.padding[-1] + OWN[-1]
    return [block for block in range(first // 4, last // 4 + 1) if any(places_of(window, block, own) for own in OWN)]


def places_of(window: Window, block: int, own: int) -> list[int]:
    """List which of a block's four elements belong to the window of the `own`-th of four neighbours."""
    size, dilation = window.size[-1], window.dilation[-1]
    beyond = [(place, 4 * block + place + window.padding[-1] - own) for place in range(4)]
    return [place for place, at in beyond if at % dilation == 0 and 0 <= at < size * dilation]


def bounds(block: int, letter: str, extent: str, tests: Sequence[str]) -> list[str]:
    """Write where a block is in its row, and which of it is inside the input."""
    moved = f" {'+' if block > 0 else '-'} {abs(4 * block)}" if block else ""
    edges = [*([f"(at_{letter} >= 0)"] if block < 0 else []), f"(at_{letter} < {extent})"]
    return [f"at_{letter} = cols{moved}", f"inside = {' & '.join(['mask_m', *tests, *edges])}"]


def shares(window: Window, block: int, here: str) -> list[str]:
    """Write how a block is taken apart and added to the windows it belongs to, in ascending order of each window's elements."""
    places = [places_of(window, block, own) for own in OWN]
    names = [f"e{place}" if any(place in of_one for of_one in places) else "_" for place in range(4)]
    grown = (lambda acc, one: f"larger({acc}, {one})") if window.kind is PoolKind.MAX else (lambda acc, one: f"{acc} + {one}")
    lines = [f"{', '.join(names)} = quarters({here})"]
    for own, of_one in zip(OWN, places, strict=True):
        if of_one:
            lines.append(f"acc_{own} = {reduce(grown, [f'e{place}' for place in of_one], f'acc_{own}')}")
    return lines


def helpers(window: Window) -> tuple[str, ...]:
    """Name the device functions that this text calls."""
    return ("quarters", *(("larger",) if window.kind is PoolKind.MAX else ()), "together")


def quotient(window: Window, letters: str, begins: Sequence[str], extents: Sequence[str]) -> list[str]:
    """Write the division by the elements that are there: along each dimension those of a window, which has no dilation, inside the input.

    `begins` are where the windows begin, padding not counted.
    """
    lines, factors = [], []
    for letter, size, padding, begin, extent in zip(letters, window.size, window.padding, begins, extents, strict=True):
        factors.append(f"count_{letter}" if padding else str(size))
        if padding:
            lines.append(f"count_{letter} = tl.minimum({begin} + {size - padding}, {extent}) - tl.maximum({begin} - {padding}, 0)")
    return [*lines, f"acc = acc / ({' * '.join(factors)}).to(tl.float32)"]
