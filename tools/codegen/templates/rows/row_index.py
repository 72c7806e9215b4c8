"""The statements that open a row kernel: which row or rows a program has."""

from __future__ import annotations

from tools.codegen.templates.rows.column_loop import Steps
from tools.codegen.templates.rows.layout import RowLayout
from tools.codegen.templates.shared.iteration_space import Space
from tools.codegen.templates.shared.knob import Settings


def row_lines(space: Space, plan: RowLayout, vector: bool, program: str) -> list[str]:
    """Write the row index, or the tile of rows with its mask, of the program numbered `program`."""
    if not plan.rows:
        return []
    rows = space.axis("rows")
    if not vector:
        return [f"row = {program}.to(tl.int64)", *space.parts(rows)]
    n_rows = space.monomial(rows.atoms)
    arange = "tl.arange(0, ROWS)[:, None]"
    if not any(axis.name == "outer" for axis in space.axes):
        lines = [f"rows = {program}{space.long(rows)} * ROWS + {arange}"]
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
    return f"n_outer * {tiles}" if any(axis.name == "outer" for axis in space.axes) else tiles


def row_steps(space: Space, plan: RowLayout, parameters: Settings, vector: bool, chunked: bool = False) -> Steps:
    """Say how a program steps along its row."""
    unroll = 1 if vector or plan.scans else int(parameters.get("UNROLL", 1))
    stages, wide = int(parameters.get("num_stages", 1)), int(parameters.get("BLOCK_N", 0))
    return Steps(space, vector, unroll, stages, chunked, plan.backwards, wide, plan.n_piece)


def row_masks(steps: Steps) -> dict[str, str]:
    """Name the mask of each axis that needs one."""
    masks = {"cols": "mask_n"}
    if steps.vector:
        masks["rows"] = "mask_m"
    if steps.in_pieces and steps.tall:
        masks["steps"] = "mask_k"
    return masks
