"""Parameters of a row kernel: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.rows.layout import RowLayout, row_layout_of
from tools.codegen.templates.rows.online_pairs import merges
from tools.codegen.templates.shared.knob import WARPS, Knob, Parameters, Settings
from tools.codegen.templates.shared.work import SECTOR
from tools.records import ITEM_BYTES, ActionKind

LONGEST_REGISTER_ROW = 16384
"""Columns up to which a row is held in registers: 32 elements a thread of 16 warps, the most that leaves room for a second operand.

Measured on an H200, cross entropy of rows of 32,000: 110 µs in registers (32 warps), 97 µs in blocks of 1,024 (4 warps).
"""
MOST_A_THREAD = 64
"""Elements of one tile a thread may hold; beyond it the 255 registers of a thread spill with one more operand."""
WIDE_LOAD = 16
"""Bytes of the widest load of a thread. A block of that many bytes a thread lays the blocks of a step below one another in one thread."""
LONGEST_TWO_PASS = 16 << 20
"""Bytes of a row up to which its second reading may find it in the L2.

On an H200 an instance norm with rows of 1 MiB took 4.5 ms, 0.81 of torch.compile's time, a group norm with 8 MiB 4.7 ms, 0.91 of it.
"""
LEAST_TWO_PASS = 64 << 20
"""Bytes of all rows from which on they do not stay in the L2 by themselves until they are read again: more than an H200 has of it."""
TWO_PASS_CHUNK = 8192
"""Elements of a program of `l2_two_pass`. On an H200, with four norms, 4096 and 8192 were alike, 2048 and 16384 slower."""
FULL = 8
"""Programs of four to eight warps that a multiprocessor needs to keep the memory busy, with 64 bytes in flight a thread."""
WHOLE_ROWS = (
    "rows with a scan that a later step along them waits for are not split; l2_two_pass takes only rows that lie one behind the other and "
    "are written along their columns after a reduction, one a program (ROWS=1)"
)
"""Which rows can be given to several programs."""

KNOBS: Mapping[str, Knob] = {
    "algorithm": Knob(ActionKind.ALGORITHM, ("registers", "looped", "online", "split", "l2_two_pass")),
    "ROWS": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64, 128)),
    "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)),
    "UNROLL": Knob(ActionKind.PIPELINE, (1, 2, 4, 8)),
    "SPLITS": Knob(ActionKind.LAUNCH, (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
    "num_warps": WARPS,
    "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4), modelled=False),
}


def row_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Rows that fit are held in registers, longer ones walked, few long ones split over programs."""
    layout = row_layout_of(kernel)
    columns = power_of_two(layout.n_cols)
    if not layout.inner_reduction:
        return _strided_rows(layout, columns, sms)
    if layout.n_rows < sms and layout.n_cols >= 8192 and not layout.chained:
        splits = max(2, min(1024, power_of_two(FULL // 2 * sms // layout.n_rows), columns // 4096))
        return {**_walked(layout), "algorithm": "split", "SPLITS": splits}
    if columns > LONGEST_REGISTER_ROW and _stays_cached(layout):
        return {**_walked(layout), "algorithm": "l2_two_pass", "SPLITS": min(1024, columns // TWO_PASS_CHUNK), "num_warps": 4}
    if columns > LONGEST_REGISTER_ROW:
        return _walked(layout)
    rows = 1
    while rows < 16 and rows * columns < 1024 and layout.n_rows >= 4 * sms * rows:
        rows *= 2
    warps = max(1, min(16, rows * columns // 512))
    return {**_walked(layout), "algorithm": "registers", "ROWS": rows, "num_warps": warps}


def _walked(layout: RowLayout) -> Parameters:
    """A long row, four wide loads a thread and step."""
    lanes = 32 * WIDE_LOAD // ITEM_BYTES[layout.accesses[0].meta.dtype]
    block = max(32, min(8 * lanes, power_of_two(layout.n_piece)))
    warps = max(1, block // lanes)
    algorithm, unroll = ("looped", 1) if layout.scans else ("online", 4 if warps > 2 else 8)
    return {"algorithm": algorithm, "ROWS": 1, "BLOCK_N": block, "UNROLL": unroll, "SPLITS": 2, "num_warps": warps, "num_stages": 1}


def _strided_rows(layout: RowLayout, columns: int, sms: int) -> Parameters:
    """Kept dimensions are contiguous: a tile is wide along them, so that lanes read neighbours."""
    rows = min(128, max(8, power_of_two(layout.n_inner)))
    while rows > 64 and layout.n_rows // rows < 6 * sms:
        rows //= 2
    first: Parameters = {"ROWS": rows, "BLOCK_N": 32, "UNROLL": 1, "SPLITS": 2, "num_warps": 4, "num_stages": 1}
    block = max(16, 2048 // rows)
    if layout.n_rows // rows < 2 * sms and columns >= 4 * block and not layout.chained:
        splits = max(2, min(256, power_of_two(FULL // 2 * sms * rows // max(layout.n_rows, 1)), columns // block))
        return {**first, "algorithm": "split", "BLOCK_N": block, "SPLITS": splits}
    while rows > 16 and layout.n_rows // rows < sms:
        rows //= 2
    if rows * columns <= 4096:
        return {**first, "algorithm": "registers", "ROWS": rows}
    return {**first, "algorithm": "looped" if layout.scans else "online", "ROWS": rows, "BLOCK_N": max(16, 2048 // rows)}


def rows_refusal(kernel: Kernel, parameters: Settings) -> str:
    """Say why rows cannot be given to several programs as the algorithm asks; nothing where they can."""
    layout = row_layout_of(kernel)
    if parameters["algorithm"] == "l2_two_pass":
        return "" if layout.fits_two_pass and int(parameters["ROWS"]) == 1 else WHOLE_ROWS
    return WHOLE_ROWS if parameters["algorithm"] == "split" and layout.chained else ""


def settled_rows(parameters: Settings, start: Settings) -> Parameters:
    """Give numbers that the algorithm leaves idle their first values, so that settings of the same kernel are alike."""
    algorithm = str(parameters["algorithm"])
    idle = {"registers": ("BLOCK_N", "UNROLL", "SPLITS"), "split": (), "l2_two_pass": ()}.get(algorithm, ("SPLITS",))
    if int(parameters["ROWS"]) > 1:
        idle = (*idle, "UNROLL")
    return {**parameters, **{name: start[name] for name in idle}}


def rows_fit(kernel: Kernel, parameters: Settings, knob: str) -> bool:
    """Whether changing `knob` changes the kernel, has rows and columns enough, and leaves a tile that registers hold."""
    layout = row_layout_of(kernel)
    algorithm, rows, warps = parameters["algorithm"], int(parameters["ROWS"]), int(parameters["num_warps"])
    block, unroll = int(parameters["BLOCK_N"]), int(parameters.get("UNROLL", 1)) if rows == 1 else 1
    columns = power_of_two(layout.n_cols)
    whole = algorithm == "registers"
    idle = {"BLOCK_N", "SPLITS", "UNROLL", "num_stages"} if whole else set() if algorithm in ("split", "l2_two_pass") else {"SPLITS"}
    if rows > 1 or layout.scans:
        idle |= {"UNROLL"}
    if knob in idle or (not whole and columns <= block * unroll):
        return False
    if (layout.scans and algorithm == "online") or (layout.chained and algorithm == "split"):
        return False
    if knob == "algorithm" and algorithm == "looped" and not layout.scans and not merges(kernel.builder):
        return False
    if algorithm == "l2_two_pass":
        chunk = columns // int(parameters["SPLITS"])
        if rows > 1 or chunk < max(block * unroll, TWO_PASS_CHUNK // 2) or not _stays_cached(layout):
            return False
    if algorithm == "split" and columns // int(parameters["SPLITS"]) < 16:
        return False
    tile = rows * (columns if whole else block * unroll)
    return _rows_exist(layout, rows) and 32 * warps <= tile <= MOST_A_THREAD * 32 * warps


def _stays_cached(layout: RowLayout) -> bool:
    """Whether rows fit `l2_two_pass`, and the second reading of one finds it in the cache then and not otherwise."""
    wide = max(ITEM_BYTES[access.meta.dtype] for access in layout.accesses)
    if len(layout.col_groups) > 1 and layout.n_piece * wide < SECTOR:
        # rows share their sectors with other rows
        return False
    row = layout.n_cols * wide
    return layout.fits_two_pass and row <= LONGEST_TWO_PASS and row * layout.n_rows >= LEAST_TWO_PASS


def _rows_exist(layout: RowLayout, rows: int) -> bool:
    """Whether there are that many rows to share a program; where the kept dimensions are contiguous, one row would read strided."""
    if layout.inner_reduction:
        return rows == 1 or rows <= power_of_two(layout.n_rows)
    return 1 < rows <= power_of_two(layout.n_inner)
