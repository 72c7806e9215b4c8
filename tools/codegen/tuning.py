"""Parameters of each template: legal values, which kind of action changes each, first values, and what is not worth trying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tools.codegen import template_pointwise
from tools.codegen.graph import TensorMeta
from tools.codegen.regions import ATTENTION, MATMUL, POINTWISE, ROWS, WINDOW, Planned
from tools.codegen.rows_space import RowLayout, row_layout
from tools.records import ITEM_BYTES, ActionKind, HardwareSheet

Value = bool | int | float | str
Parameters = dict[str, Value]


@dataclass(frozen=True)
class Knob:
    """One parameter of a template."""

    kind: ActionKind
    values: tuple[Value, ...]


WARPS = Knob(ActionKind.LAUNCH, (1, 2, 4, 8, 16, 32))

KNOBS: dict[str, dict[str, Knob]] = {
    POINTWISE: {
        "algorithm": Knob(ActionKind.ALGORITHM, ("flat", "tile")),
        "ELEMENTS": Knob(ActionKind.VECTORISATION, (1, 2, 4, 8, 16, 32)),
        "num_warps": WARPS,
    },
    ROWS: {
        "algorithm": Knob(ActionKind.ALGORITHM, ("registers", "looped", "online", "split")),
        "ROWS": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64, 128)),
        "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)),
        "SPLITS": Knob(ActionKind.LAUNCH, (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
        "num_warps": WARPS,
        "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4)),
    },
    WINDOW: {
        "ELEMENTS": Knob(ActionKind.VECTORISATION, (1, 2, 4, 8, 16, 32)),
        "num_warps": WARPS,
    },
    MATMUL: {
        "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
        "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
        "BLOCK_K": Knob(ActionKind.TILING, (16, 32, 64, 128)),
        "GROUP_M": Knob(ActionKind.REORDERING, (1, 4, 8, 16)),
        "precision": Knob(ActionKind.PRECISION, ("ieee", "tf32x3")),
        "accumulate": Knob(ActionKind.PRECISION, ("direct", "chunked")),
        "right": Knob(ActionKind.LAYOUT, ("as_is", "k_major")),
        "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
        "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4, 5)),
    },
    ATTENTION: {
        "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128)),
        "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128)),
        "BLOCK_D": Knob(ActionKind.TILING, (32, 64, 128, 256)),
        "BLOCK_V": Knob(ActionKind.TILING, (32, 64, 128, 256)),
        "precision": Knob(ActionKind.PRECISION, ("ieee", "tf32x3", "bf16x6")),
        "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
        "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4)),
    },
}
"""Every parameter that a schedule can hold."""

LONGEST_REGISTER_ROW = 16384
"""Columns up to which a row is held in registers: 32 elements a thread of 16 warps, the most that leaves room for a second operand.

Measured on an H200, cross entropy of rows of 32,000: 110 µs in registers (32 warps), 97 µs in blocks of 1,024 (4 warps).
"""
MOST_A_THREAD = 64
"""Elements of one tile a thread may hold; beyond it the 255 registers of a thread spill with one more operand."""


def defaults(planned: Planned, sms: int) -> Parameters:
    """Choose first parameters from the shapes as written and the number of multiprocessors."""
    if planned.template == POINTWISE:
        return _pointwise(planned)
    if planned.template == ROWS:
        return _rows(row_layout(planned.kernel), sms)
    if planned.template == WINDOW:
        # neighbours share most of their windows: few elements a thread, so that they are in the cache together
        return {"ELEMENTS": 2, "num_warps": 4}
    return _attention(planned) if planned.template == ATTENTION else _matmul(planned, sms)


def _pointwise(planned: Planned) -> Parameters:
    layout = template_pointwise.layout(planned.kernel)
    tile = layout.tiles and layout.n_cols >= template_pointwise.SMALLEST_ROW
    # 32 bytes a thread: two independent 16-byte loads of each operand
    elements = max(4, 32 // _widest(layout.accesses[0].meta))
    return {"algorithm": "tile" if tile else "flat", "ELEMENTS": min(elements, 16), "num_warps": 4}


def _widest(meta: TensorMeta) -> int:
    return ITEM_BYTES[meta.dtype]


def _rows(layout: RowLayout, sms: int) -> Parameters:
    columns = power_of_two(layout.n_cols)
    if not layout.inner_reduction:
        return _strided_rows(layout, columns, sms)
    if layout.n_rows < sms and layout.n_cols >= 8192 and not layout.scans:
        splits = max(2, min(1024, power_of_two(2 * sms // layout.n_rows), columns // 4096))
        return {"algorithm": "split", "ROWS": 1, "BLOCK_N": 4096, "SPLITS": splits, "num_warps": 8, "num_stages": 1}
    if columns > LONGEST_REGISTER_ROW:
        return {
            "algorithm": "looped" if layout.scans else "online",
            "ROWS": 1,
            # the same measurement: 112 µs with 4,096 and 8 warps, 161 µs with 8,192 and 16
            "BLOCK_N": 1024,
            "SPLITS": 2,
            "num_warps": 4,
            "num_stages": 1,
        }
    rows = 1
    while rows < 16 and rows * columns < 1024 and layout.n_rows >= 4 * sms * rows:
        rows *= 2
    warps = max(1, min(16, rows * columns // 512))
    return {"algorithm": "registers", "ROWS": rows, "BLOCK_N": 4096, "SPLITS": 2, "num_warps": warps, "num_stages": 1}


def _strided_rows(layout: RowLayout, columns: int, sms: int) -> Parameters:
    """Kept dimensions are contiguous: a tile is wide along them, so that lanes read neighbours."""
    rows = min(128, max(8, power_of_two(layout.n_inner)))
    while rows > 16 and layout.n_rows // rows < sms:
        rows //= 2
    if rows * columns <= 4096:
        return {"algorithm": "registers", "ROWS": rows, "BLOCK_N": 32, "SPLITS": 2, "num_warps": 4, "num_stages": 1}
    block = max(16, 4096 // rows)
    splits = max(2, min(256, power_of_two(2 * sms * rows // max(layout.n_rows, 1)), columns // block))
    if layout.scans:
        return {"algorithm": "looped", "ROWS": rows, "BLOCK_N": block, "SPLITS": 2, "num_warps": 4, "num_stages": 1}
    algorithm = "split" if layout.n_rows < sms * rows // 2 and columns >= 4 * block else "online"
    return {"algorithm": algorithm, "ROWS": rows, "BLOCK_N": block, "SPLITS": splits, "num_warps": 4, "num_stages": 1}


def _matmul(planned: Planned, sms: int) -> Parameters:
    from tools.codegen.template_matmul import product_layout

    layout = product_layout(planned.kernel)
    block_m = min(128, max(16, power_of_two(layout.n_rows)))
    block_n = min(128, max(16, power_of_two(layout.n_cols)))
    while max(block_m, block_n) > 32 and layout.n_batch * -(-layout.n_rows // block_m) * -(-layout.n_cols // block_n) < sms:
        block_m, block_n = (block_m // 2, block_n) if block_m >= block_n else (block_m, block_n // 2)
    half = layout.dtype in ("float16", "bfloat16")
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_K": 64 if half else 32,
        "GROUP_M": 8,
        "precision": "ieee" if half else "tf32x3",
        "accumulate": "direct" if half else "chunked",
        "right": "as_is",
        "num_warps": 8 if block_m * block_n >= 128 * 128 else 4,
        "num_stages": 3,
    }


def _attention(planned: Planned) -> Parameters:
    from tools.codegen.attention_space import attention_layout

    layout = attention_layout(planned.kernel)
    half = layout.dtype in ("float16", "bfloat16")
    head, value = max(16, power_of_two(layout.n_inner)), max(16, power_of_two(layout.n_wide))
    # a head held whole lies in registers or shared memory all through the walk: 64 KiB of queries at most
    widest = 256 if half else 128
    block_m = min(128 if half else 64, max(16, power_of_two(layout.n_rows)))
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": min(64 if half and value <= 128 else 32, max(16, power_of_two(layout.n_cols))),
        "BLOCK_D": head if head <= widest else 64,
        "BLOCK_V": min(value, widest),
        "precision": "ieee" if half else "tf32x3",
        "num_warps": 8 if block_m * min(value, widest) >= 128 * 128 else 4,
        "num_stages": 2,
    }


def power_of_two(number: int) -> int:
    """Round up to a power of two, at least one."""
    return 1 << max(0, (number - 1).bit_length())


def possible(planned: Planned, parameters: Mapping[str, Value]) -> bool:
    """Whether the template can be emitted with these parameters: a scan is walked by one program, in order."""
    return planned.template != ROWS or parameters["algorithm"] != "split" or not row_layout(planned.kernel).scans


def worthwhile(planned: Planned, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes the kernel and can run on the device."""
    checks: dict[str, Callable[[], bool]] = {
        POINTWISE: lambda: _pointwise_fits(planned, parameters, knob),
        ROWS: lambda: _rows_fit(row_layout(planned.kernel), parameters, knob),
        WINDOW: lambda: 64 <= int(parameters["ELEMENTS"]) * 32 * int(parameters["num_warps"]) <= 8192,
        MATMUL: lambda: _matmul_fits(planned, parameters, knob, sheet),
        ATTENTION: lambda: _attention_fits(planned, parameters, knob, sheet),
    }
    return checks[planned.template]()


def _pointwise_fits(planned: Planned, parameters: Mapping[str, Value], knob: str) -> bool:
    layout = template_pointwise.layout(planned.kernel)
    if knob == "algorithm":
        return layout.tiles
    return 128 <= int(parameters["ELEMENTS"]) * 32 * int(parameters["num_warps"]) <= 16384


def _rows_fit(layout: RowLayout, parameters: Mapping[str, Value], knob: str) -> bool:
    algorithm, rows, warps = parameters["algorithm"], int(parameters["ROWS"]), int(parameters["num_warps"])
    columns, block = power_of_two(layout.n_cols), int(parameters["BLOCK_N"])
    whole = algorithm == "registers"
    idle = {"BLOCK_N", "SPLITS", "num_stages"} if whole else set() if algorithm == "split" else {"SPLITS"}
    if knob in idle or (not whole and columns <= block):
        return False
    if layout.scans and algorithm in ("online", "split"):
        return False
    if algorithm == "split" and columns // int(parameters["SPLITS"]) < 16:
        return False
    tile = rows * (columns if whole else block)
    return _rows_exist(layout, rows) and 32 * warps <= tile <= MOST_A_THREAD * 32 * warps


def _rows_exist(layout: RowLayout, rows: int) -> bool:
    """Whether there are that many rows to share a program; where the kept dimensions are contiguous, one row would read strided."""
    if layout.inner_reduction:
        return rows == 1 or rows <= power_of_two(layout.n_rows)
    return 1 < rows <= power_of_two(layout.n_inner)


def _matmul_fits(planned: Planned, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
    from tools.codegen.template_matmul import product_layout

    layout = product_layout(planned.kernel)
    if knob == "precision" and layout.dtype != "float32":
        return False
    if knob == "right" and layout.right_is_k_major:
        return False
    block_m, block_n, block_k = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    if block_m > max(16, power_of_two(layout.n_rows)) or block_n > max(16, power_of_two(layout.n_cols)):
        return False
    if block_k > max(16, power_of_two(layout.n_inner)):
        return False
    warps = int(parameters["num_warps"])
    shared = (block_m + block_n) * block_k * ITEM_BYTES[layout.dtype] * int(parameters["num_stages"])
    return shared <= sheet.shared_kib_per_block * 1024 and 8 <= block_m * block_n // (32 * warps) <= 128


def _attention_fits(planned: Planned, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
    from tools.codegen.attention_space import attention_layout

    layout = attention_layout(planned.kernel)
    if knob == "precision" and layout.dtype != "float32":
        return False
    block_m, block_n, block_d, block_v = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_D", "BLOCK_V"))
    head, value = max(16, power_of_two(layout.n_inner)), max(16, power_of_two(layout.n_wide))
    longest = {"BLOCK_M": layout.n_rows, "BLOCK_N": layout.n_cols, "BLOCK_D": head, "BLOCK_V": value}
    if knob in longest and int(parameters[knob]) > max(16, power_of_two(longest[knob])):
        return False
    stages, bytes_each = int(parameters["num_stages"]), ITEM_BYTES[layout.dtype]
    shared = (block_m * min(block_d, head) + stages * block_n * (min(block_d, head) + min(block_v, value))) * bytes_each
    a_thread = block_m * (min(block_v, value) + block_n) // (32 * int(parameters["num_warps"]))
    return shared <= sheet.shared_kib_per_block * 1024 and 8 <= a_thread <= 192
