"""Nsight Compute's command and its output. The tables here are synthetic: written in the documented format, not recorded."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from tools.profiling.ncu import METRICS, NO_COUNTERS, NO_PERMISSION, NOT_INSTALLED, Counters, command, counters, find_ncu, read
from tools.records import FigureSource

COLUMNS = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]
COUNTED = {
    "gpu__time_duration.sum": ("nsecond", ("100,000.00", "300,000.00")),
    "dram__bytes_read.sum": ("byte", ("268,435,456", "1,000")),
    "dram__bytes_write.sum": ("Mbyte", ("268.4", "0")),
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("%", ("90.0", "10.0")),
    "launch__registers_per_thread": ("register/thread", ("32", "n/a")),
}
PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0."
)


def table() -> str:
    """A synthetic raw page of two kernels, with the program's own lines around it."""
    header = [*COLUMNS, *COUNTED]
    units = [*[""] * len(COLUMNS), *(unit for unit, _ in COUNTED.values())]
    rows = [[str(i), "77", "python", "host", f"kernel{i}", "1", "7", "(128, 1, 1)", "(4096, 1, 1)", "0", "9.0"] for i in (0, 1)]
    body = [[*row, *(values[i] for _, values in COUNTED.values())] for i, row in enumerate(rows)]
    lines = [",".join(f'"{cell}"' for cell in line) for line in (header, units, *body)]
    return "\n".join(["==PROF== Connected to process 77", "hello from the program", *lines, "==PROF== Disconnected from process 77"])


def script(folder: Path, body: str) -> Path:
    """An executable of the name `ncu` in `folder`."""
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_command_leaves_the_clocks_alone() -> None:
    """Clocks are not locked, the raw page is asked for as CSV, every metric is named, and the program comes last."""
    line = command(Path("/usr/bin/ncu"), ["python", "run.py"], kernels="softmax", launches=3)
    assert line[line.index("--clock-control") + 1] == "none"
    assert line[line.index("--page") + 1] == "raw"
    assert all(metric.counter in line[line.index("--metrics") + 1] for metric in METRICS)
    assert line[line.index("--kernel-name") + 1] == "regex:softmax"
    assert line[-2:] == ["python", "run.py"]


def test_counters_become_figures_in_our_units() -> None:
    """Times and bytes add up over kernels, in microseconds and bytes; shares are averaged by the kernels' times."""
    found = read(table(), 0)
    figures = {f.name: f.value for f in found.figures}
    assert found.kernels == ("kernel0", "kernel1")
    assert figures["kernel_us"] == pytest.approx(400.0)
    assert figures["dram_read_bytes"] == 268_436_456
    assert figures["dram_write_bytes"] == pytest.approx(268.4e6)
    assert figures["dram_percent"] == pytest.approx(0.25 * 90 + 0.75 * 10)
    assert {f.source for f in found.figures} == {FigureSource.COUNTERS}


def test_metrics_that_a_device_lacks_are_named() -> None:
    """What was not printed is left out and said; `n/a` for one kernel leaves the others."""
    found = read(table(), 0)
    assert "tensor_percent" in found.note
    assert next(f.value for f in found.figures if f.name == "launch_registers") == 32


@pytest.mark.parametrize(
    ("output", "note"),
    [
        (PERMISSION, NO_PERMISSION),
        ("==ERROR== Failed to prepare kernel for profiling\n==ERROR== Unknown Error on device 0.", NO_COUNTERS),
        ("==ERROR== Profiling is not supported on device 0.", NO_COUNTERS),
        ("==WARNING== No kernels were profiled.", "Nsight Compute saw no kernel: the program launched none that was asked for."),
        ("==ERROR== Failed to find metric foo", "Nsight Compute gave no counters (exit status 1): ==ERROR== Failed to find metric foo"),
        ("", "Nsight Compute gave no counters (exit status 1): nothing"),
    ],
)
def test_each_way_of_having_no_counters_is_told_apart(output: str, note: str) -> None:
    """No permission, no counters, no kernel and anything else each give their own sentence and no figure."""
    assert read(output, 1) == Counters(note=note)


def test_a_machine_without_ncu_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With nothing on PATH and nothing where the installers put it, the note says that it is not installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    if find_ncu() is not None:
        pytest.skip("Nsight Compute is installed outside PATH here")
    assert counters(["true"], timeout_s=5) == Counters(note=NOT_INSTALLED)


def test_what_ncu_prints_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first ncu on PATH is run with the program, and its table read."""
    (tmp_path / "table.csv").write_text(table())
    script(tmp_path, f'for last; do :; done; [ "$last" = run.py ] && cat {tmp_path}/table.csv')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert counters(["python", "run.py"], timeout_s=10).kernels == ("kernel0", "kernel1")


def test_a_hanging_program_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At the deadline ncu and what it started are killed, and the note gives the limit."""
    script(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert counters(["true"], timeout_s=0.5).note == "Nsight Compute did not finish within 0.5 s."
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.05)
    pytest.fail("what ncu started is still running")
