"""The statements that open a row kernel: which row or rows a program has."""

from __future__ import annotations

from tools.codegen.rows_space import RowLayout
from tools.codegen.spaces import Space


def row_lines(space: Space, plan: RowLayout, vector: bool, program: str) -> list[str]:
    """Write the row index, or the tile of rows with its mask, of the program numbered `program`."""
    if not plan.rows:
        return []
    rows = space.axis("rows")
    if not vector:
        return [f"row = {program}.to(tl.int64)", *space.parts(rows)]
    n_rows = space.monomial(rows.atoms)
    arange = "tl.arange(0, ROWS)[:, None]"
    if len(space.axes) == 2:
        lines = [f"rows = {program}.to(tl.int64) * ROWS + {arange}"]
    else:
        outer = space.axis("outer")
        lines = [
            f"tile = {program}",
            f"tiles_m = tl.cdiv({n_rows}, ROWS)",
            "outer = (tile // tiles_m).to(tl.int64)",
            *space.parts(outer),
            f"rows = (tile % tiles_m) * ROWS + {arange}",
        ]
    return [*lines, f"mask_m = rows < {n_rows}", *space.parts(rows)]


def row_tiles(space: Space, plan: RowLayout, vector: bool, rows: int) -> str:
    """Write how many programs cover all rows."""
    if not plan.rows:
        return "1"
    if not vector:
        return "n_rows"
    tiles = f"triton.cdiv(n_rows, {rows})"
    return tiles if len(space.axes) == 2 else f"n_outer * {tiles}"
