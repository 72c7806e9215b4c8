"""Hardware counters through Nsight Compute: finds it, builds its command, runs it under a deadline, reads what it prints.

Nothing here makes a sandbox: `counters` runs the argv it is given. A caller with its own runner takes `command` and
gives `read` what came back.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tools.records import Figure, FigureSource, Record


class Metric(NamedTuple):
    """One metric of Nsight Compute and the figure it becomes."""

    counter: str
    """Its name in Nsight Compute (Kernel Profiling Guide, metrics reference)."""
    figure: str
    unit: str
    """Unit of the figure: bytes, us, percent, count, ratio."""
    added: bool = False
    """True where kernels of a call add up; else they are averaged by their durations."""


METRICS = (
    Metric("gpu__time_duration.sum", "kernel_us", "us", added=True),
    Metric("dram__bytes_read.sum", "dram_read_bytes", "bytes", added=True),
    Metric("dram__bytes_write.sum", "dram_write_bytes", "bytes", added=True),
    Metric("dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram_percent", "percent"),
    Metric("sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm_percent", "percent"),
    Metric("lts__t_sector_hit_rate.pct", "l2_hit_percent", "percent"),
    Metric("sm__warps_active.avg.pct_of_peak_sustained_active", "achieved_occupancy_percent", "percent"),
    Metric("launch__registers_per_thread", "launch_registers", "count"),
    Metric("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "tensor_percent", "percent"),
    *(
        Metric(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio", f"stall_{reason}", "ratio")
        for reason in ("long_scoreboard", "short_scoreboard", "barrier", "math_pipe_throttle", "lg_throttle", "mio_throttle", "wait")
    ),
)
"""The metric set; a device without one of them prints `n/a` or leaves it out, and its figure is left out."""

_SCALES = {
    "": 1.0, "byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12,
    "nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6,
    "%": 1.0, "register/thread": 1.0, "inst": 1.0, "warp": 1.0, "ratio": 1.0,
}  # fmt: skip
"""Nsight Compute chooses a unit for each column; bytes and microseconds are ours."""

NOT_INSTALLED = "Nsight Compute (ncu) is not installed here, so no hardware counters were read."
NO_PERMISSION = (
    "This user may not read the GPU's performance counters (ERR_NVGPUCTRPERM): an administrator must allow it "
    "(driver option NVreg_RestrictProfilingToAdminUsers=0) or the worker needs CAP_SYS_ADMIN."
)
NO_COUNTERS = "This machine's runtime gives no access to performance counters (a virtual GPU, another profiler, or an unsupported device)."


MAX_KERNELS = 256
"""Launches of one call that are read."""
_NAME_LENGTH = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_REFUSED = re.compile(
    r"ERR_NVGPU|not supported|No supported GPUs|Failed to (?:prepare|profile|initialize)|performance monitor", re.IGNORECASE
)


class Counters(Record):
    """What the counters said, or why they said nothing."""

    figures: tuple[Figure, ...] = ()
    kernels: tuple[str, ...] = ()
    """Names of the kernels that were counted, in order."""
    sandbox: str = ""
    """Which isolation was in force around the program, in words."""
    note: str = ""
    """One sentence for `Profile.notes` where something is missing; empty where all was read."""


def find_ncu() -> Path | None:
    """Find Nsight Compute: on PATH, else the newest in the places where NVIDIA's installers put it."""
    if found := shutil.which("ncu"):
        return Path(found)
    places = [*Path("/opt/nvidia/nsight-compute").glob("*/ncu"), *Path("/usr/local").glob("cuda*/bin/ncu")]
    return max((p for p in places if os.access(p, os.X_OK)), key=lambda p: _numbers(str(p)), default=None)


def command(ncu: Path, argv: Sequence[str], kernels: str = "", launches: int = 0, *, marked: bool = False) -> list[str]:
    """Build the command that counts `argv` and its children, clocks left as they are.

    `kernels` is a regular expression over kernel names, `launches` the most that are counted; empty and 0 mean all. With `marked`
    only what the program launches between cudaProfilerStart and cudaProfilerStop is counted.
    """
    line = [str(ncu), "--csv", "--page", "raw", "--clock-control", "none", "--target-processes", "all", "--print-units", "base"]
    line += ["--metrics", ",".join(metric.counter for metric in METRICS)]
    line += ["--kernel-name", f"regex:{kernels}"] if kernels else []
    line += ["--launch-count", str(launches)] if launches else []
    line += ["--profile-from-start", "off"] if marked else []
    return [*line, *argv]


def counters(argv: Sequence[str], timeout_s: float, kernels: str = "", launches: int = 0) -> Counters:
    """Run `argv` under Nsight Compute for at most `timeout_s` and read its counters; whatever fails is in the note."""
    ncu = find_ncu()
    if ncu is None:
        return Counters(note=NOT_INSTALLED)
    line = command(ncu, argv, kernels, launches)
    try:
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    except OSError as error:
        return Counters(note=f"Nsight Compute at {ncu} did not start: {error}.")
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        # the group, so that the program under ncu ends with it
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Counters(note=f"Nsight Compute did not finish within {timeout_s:g} s.")
    return read(output, process.returncode)


def read(output: str, returncode: int) -> Counters:
    """Read what `ncu --csv --page raw` printed, the program's own lines among it; any text gives an answer."""
    try:
        rows = _rows(output)
    except csv.Error:
        rows = []
    if rows:
        return _figures(rows)
    if "ERR_NVGPUCTRPERM" in output:
        return Counters(note=NO_PERMISSION)
    if _REFUSED.search(output):
        return Counters(note=NO_COUNTERS)
    if "No kernels were profiled" in output:
        return Counters(note="Nsight Compute saw no kernel: the program launched none that was asked for.")
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "nothing")
    return Counters(note=f"Nsight Compute gave no counters (exit status {returncode}): {last[:200]}")


class _Row(NamedTuple):
    kernel: str
    values: dict[str, float]


def _rows(output: str) -> list[_Row]:
    """Read the table: a header, a row of units, a row for each kernel launch."""
    lines = output.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    header, *body = csv.reader(io.StringIO("\n".join(line for line in lines[start:] if line.startswith('"'))))
    if not body:
        return []
    units = dict(zip(header, body[0], strict=False))
    rows = []
    for fields in body[1:]:
        cells = dict(zip(header, fields, strict=False))
        values = {m.counter: v for m in METRICS if (v := _value(cells.get(m.counter, ""), units.get(m.counter, ""))) is not None}
        rows.append(_Row(_CONTROL.sub("", cells.get("Kernel Name", "?"))[:_NAME_LENGTH], values))
    return rows[:MAX_KERNELS]


def _value(cell: str, unit: str) -> float | None:
    scale = _SCALES.get(unit.strip().lower())
    try:
        value = float(cell.replace(",", "")) * scale if scale is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _figures(rows: list[_Row]) -> Counters:
    figures = []
    for metric in METRICS:
        pairs = [(row.values[metric.counter], row.values.get(METRICS[0].counter, 1.0)) for row in rows if metric.counter in row.values]
        weight = sum(duration for _, duration in pairs)
        if not weight:
            continue
        total = sum(value for value, _ in pairs)
        value = total if metric.added else sum(v * d for v, d in pairs) / weight
        figures.append(Figure(name=metric.figure, value=value, unit=metric.unit, source=FigureSource.COUNTERS))
    missing = [m.figure for m in METRICS if m.figure not in {f.name for f in figures}]
    note = f"This device does not count: {', '.join(missing)}." if missing else ""
    return Counters(figures=tuple(figures), kernels=tuple(row.kernel for row in rows), note=note)


def _numbers(path: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", path)]
