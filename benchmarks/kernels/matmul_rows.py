"""The rows of `benchmarks.kernels.matmul_ways`, and the page they make."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.kernels.matmul_cases import CASES, find_case
from benchmarks.kernels.matmul_measurement import SAMPLES, Measurement
from tools.records import Record

Job = tuple[str, str]
"""A case and a way, by name."""


class Setting(Record):
    """What figures must share to stand in one table."""

    device: str
    driver: str
    python: str
    torch: str
    triton: str


class Row(Record):
    """How one way of one product ended."""

    case: str
    way: str
    measurement: Measurement | None = None
    """None where there is none."""
    why_not: str = ""
    """The reason then."""
    seconds: float
    """Of the whole process."""
    commit: str
    """Of the code; empty where that could not be told."""
    date: str
    setting: Setting


def _cells(row: Row) -> list[str]:
    one = row.measurement
    if one is None:
        return [row.way, "–", "–", "–", "–", "–", "–", "–", row.why_not.replace("|", "/")]
    low, high = one.quartiles_ms
    return [
        row.way,
        f"{one.ms:.3f} [{low:.3f}, {high:.3f}]",
        f"{one.cublas_ms:.3f}",
        f"{one.cublas_ms / one.ms:.2f}x",
        f"{find_case(row.case).operations / one.ms / 1e9:.1f}",
        "NaN or infinite" if one.error is None else f"{one.error:.2e} ({one.cublas_error:.2e})",
        "ok" if one.of_limit is not None and one.of_limit <= 1 else "worse",
        "yes" if one.same_bits else "NO",
        f"{one.build_s:g} s to build",
    ]


def line(row: Row) -> str:
    """Write one row by itself."""
    return " | ".join([row.case, *_cells(row)])


def table(rows: Sequence[Row]) -> str:
    """Write a page: what all was measured on, and a table for each case."""
    settings = sorted({str(row.setting.model_dump()) for row in rows})
    commits, dates = (sorted({getattr(row, name) or "unknown" for row in rows}) for name in ("commit", "date"))
    lines = [
        "# Ways of a matrix product",
        "",
        f"* Measured on: {'; '.join(settings)}. Commit: {', '.join(commits)}. Date: {', '.join(dates)}.",
        f"* Method: a process for each row; CUDA events, median and quartiles of {SAMPLES} calls, ours and cuBLAS in turn, the L2 cleared "
        "by reading before each. A call includes the passes that write operands as parts. TF32 off. No sandbox: these are no verdicts.",
        "* Error: relative L2 distance from the product in float64, in brackets cuBLAS's own. Against the exact policy's limits, of the "
        "whole and of the worst row; ways that round are worse by design.",
    ]
    names = ["way", "ms", "cuBLAS ms", "of cuBLAS", "TFLOP/s", "error (cuBLAS)", "exact limit", "same bits", ""]
    for case in CASES:
        found = [row for way in case.ways for row in rows if (row.case, row.way) == (case.name, way)]
        missing = len(case.ways) - len(found)
        if found:
            lines += ["", f"## {case.name}", "", *(f"| {' | '.join(cells)} |" for cells in (names, ["---"] * 9, *map(_cells, found)))]
            lines += ["", f"{missing} more of this size not tried."] if missing else []
    untried = [case.name for case in CASES if not any(row.case == case.name for row in rows)]
    return "\n".join([*lines, *(["", f"Sizes not tried: {'; '.join(untried)}."] if untried else [])]) + "\n"
