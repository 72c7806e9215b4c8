"""The text of `pairs`: how windows two elements apart are made of rows that are loaded once, neighbours together."""

from __future__ import annotations

from collections.abc import Callable

from tools.codegen.ir.geometry import Window

Grown = Callable[[str, str], str]
"""Writes what one more element makes of an accumulator."""


def even_and_odd(here: str, grown: Grown) -> list[str]:
    """Write what becomes of the even and the odd places of a row that was loaded."""
    return [
        f"even, odd = tl.split(tl.reshape({here}, [BLOCK_M, BLOCK_N, 2]))",
        f"evens = {grown('even', 'evens')}",
        f"odds = {grown('odd', 'odds')}",
    ]


def shared_out(window: Window, start: str, grown: Grown) -> list[str]:
    """Write how a window is put together of its own pairs and of those of lanes beside it."""
    parts = sorted(_parts_along(window), key=lambda part: (part[0] != 0, part))
    lines, made = [], ""
    for place, (shift, odd) in enumerate(parts):
        name = "odds" if odd else "evens"
        if shift:
            moved = f"cols {'+' if shift > 0 else '-'} {abs(shift)}"
            beyond = f"cols < BLOCK_N - {shift}" if shift > 0 else f"cols >= {-shift}"
            if shift not in [before for before, _ in parts[:place]]:
                held = f"tl.minimum({moved}, BLOCK_N - 1)" if shift > 0 else f"tl.maximum({moved}, 0)"
                lines.append(f"place = tl.broadcast_to({held}, [BLOCK_M, BLOCK_N])")
            lines.append(f"beside = tl.where({beyond}, tl.gather({name}, place, 1), {start})")
            name = "beside"
        made = grown(name, "acc") if made else name
        lines.append(f"acc = {made}")
    return lines


def _parts_along(window: Window) -> list[tuple[int, bool]]:
    """List what of a row of neighbours makes a window: how many pairs further on, and whether the second of the pair."""
    start = -window.padding[-1]
    return [(at // 2, bool(at % 2)) for at in range(start, start + window.size[-1])]
