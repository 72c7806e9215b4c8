"""Parameters of a loop's kernel: legal values, and first values from the shapes as written."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.recurrence.forms import matrix_form_of, scan_form_of
from tools.codegen.templates.recurrence.layout import LEAST, recurrence_layout_of
from tools.codegen.templates.recurrence.on_chip import shared_bytes
from tools.codegen.templates.shared.knob import ROUNDED, Knob, Parameters, Settings
from tools.records import ActionKind, HardwareSheet

KNOBS: Mapping[str, Knob] = {
    "algorithm": Knob(ActionKind.ALGORITHM, ("sequential", "scan", "chunked")),
    "CHUNK": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
    "ROWS": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3")),
    "num_warps": Knob(ActionKind.LAUNCH, (1, 2, 4, 8, 16)),
    "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4, 8, 16)),
}
A_THREAD = 64
"""Elements of a step's largest tile that a thread may hold."""
SHARED = 160 << 10
"""Bytes of shared memory that first parameters of chunks take at most: what a block of an A100 or an H100 has."""


def recurrence_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Choose first parameters: chunks and scans where a loop is one, else programs for all multiprocessors and few elements a thread."""
    layout = recurrence_layout_of(kernel)
    if matrix_form_of(kernel) is not None and not _refused(kernel, "chunked"):
        first = {**_first("chunked"), "ROWS": min(32, max(LEAST, power_of_two(layout.size("rows")))), "num_warps": 4}
        for chunk in (64, 32, 16):
            if shared_bytes(layout, {**first, "CHUNK": chunk}) <= SHARED:
                return {**first, "CHUNK": chunk}
    rows = min(power_of_two(layout.size("rows")), 128 if layout.largest == 1 else 16)
    while rows > 1 and (rows * layout.largest > 4096 or layout.size("outer") * -(-layout.size("rows") // rows) < sms):
        rows //= 2
    if scan_form_of(kernel):
        return {**_first("scan"), "CHUNK": 64, "ROWS": max(rows, min(8, power_of_two(layout.size("rows")))), "num_warps": 4}
    if layout.largest == 1:
        rows = max(rows, min(32, power_of_two(layout.size("rows"))))
    warps = 1
    while warps < 16 and rows * layout.largest > 32 * warps * A_THREAD // 4:
        warps *= 2
    return {**_first("sequential"), "ROWS": rows, "num_warps": warps}


def _first(algorithm: str) -> Parameters:
    return {"algorithm": algorithm, "CHUNK": 64, "ROWS": 1, "precision": "tf32x3", "num_warps": 4, "num_stages": 2}


def refusal(kernel: Kernel, parameters: Settings) -> str:
    """Say why a loop has no kernel by an algorithm; nothing where it has."""
    return _refused(kernel, str(parameters["algorithm"]))


def _refused(kernel: Kernel, algorithm: str) -> str:
    if algorithm == "scan" and not scan_form_of(kernel):
        return "a step is not linear in what it carries, element by element"
    if algorithm != "chunked":
        return ""
    return "" if matrix_form_of(kernel) else "the loop carries no matrix to which outer products are added and which queries read"


def recurrence_fits(kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` changes the kernel and leaves tiles that registers can hold."""
    layout = recurrence_layout_of(kernel)
    algorithm, chunk, rows, warps = (parameters[name] for name in ("algorithm", "CHUNK", "ROWS", "num_warps"))
    rows, threads, chunk = int(rows), 32 * int(warps), int(chunk)
    idle = {"sequential": ("CHUNK", "precision"), "scan": ("precision",), "chunked": ()}[str(algorithm)]
    if knob in idle or refusal(kernel, parameters) or rows > max(LEAST, power_of_two(layout.size("rows"))):
        return False
    if shared_bytes(layout, parameters) > sheet.shared_kib_per_block * 1024:
        return False
    held = max(LEAST, layout.largest)
    if algorithm == "chunked":
        rows = max(LEAST, rows)
        tile = chunk * chunk + chunk * (2 * held + rows) + held * rows
        return tile <= threads * 3 * A_THREAD and threads >= 128
    tile = rows * layout.largest * (chunk if algorithm == "scan" else 1)
    return tile <= threads * A_THREAD * (1 if algorithm == "scan" else 2) and (tile >= threads // 4 or threads == 32)
