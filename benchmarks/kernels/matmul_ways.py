"""Times and checks the built-in coder's ways of a matrix product on this GPU against cuBLAS, each in a process of its own.

Usage: python -m benchmarks.kernels.matmul_ways --out FILE.md [--seconds N] [--limit N] [--only TEXT …] [--list]

Our own generated code only, so there is no sandbox: these are no verdicts. Every row is written as it comes, to FILE.jsonl and as a table
to FILE.md. The same command goes on with what is missing, and then tries again what failed or was cut off; what was measured stays.
Exit status 1 where something failed or is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.kernels.matmul_cases import CASES
from benchmarks.kernels.matmul_measurement import Ending
from benchmarks.kernels.matmul_rows import Job, Row, Setting, line, table
from tools.hardware.devices import visible_devices
from tools.profiling.nvml import driver_version

LEAST_S = 20.0
"""Nothing is begun with less time left: torch's import, a compilation and a float64 product take 10 s and more."""


class Run:
    """The rows of one file, and the processes that make them."""

    def __init__(self, out: Path, setting: Setting, command: Callable[[Job, Path], list[str]]) -> None:
        """Go on with what `out` holds; `command` measures one job and writes an `Ending` to the path."""
        self.out, self._setting, self._command = out, setting, command
        self._file = out.with_suffix(".jsonl")
        known = self._file.read_text().splitlines() if self._file.exists() else []
        self.rows = {(row.case, row.way): row for row in map(Row.model_validate_json, known)}

    def strangers(self) -> list[Setting]:
        """List settings of rows that were measured on another device or with other versions."""
        return [row.setting for row in self.rows.values() if row.setting != self._setting]

    def go(self, wanted: Sequence[Job], limit_s: float, seconds: float, least_s: float = LEAST_S) -> bool:
        """Measure what is not, one process after the other; whether all is now. `seconds` of 0 set no limit."""
        end = time.monotonic() + seconds if seconds else float("inf")
        waiting = [job for job in wanted if job not in self.rows or self.rows[job].measurement is None]
        # what failed before comes last: it must not take the time of what was never tried
        for job in sorted(waiting, key=lambda job: job in self.rows):
            left = end - time.monotonic()
            if left < least_s:
                break
            row = self._one(job, limit_s, left)
            if row is not None:
                self.rows[job] = row
                self._write()
                print(line(row), flush=True)
        return all(job in self.rows and self.rows[job].measurement for job in wanted)

    def _one(self, job: Job, limit_s: float, left: float) -> Row | None:
        """Run one process; None where the whole run's time ended it."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "ending.json"
            status = _status(self._command(job, out), min(limit_s, left))
            if status is None and left < limit_s:
                return None
            ending = Ending.model_validate_json(out.read_text()) if out.exists() else Ending()
        why_not = ending.error or (f"cut off after {limit_s:g} s" if status is None else f"exit status {status}")
        case, way = job
        return Row(
            case=case,
            way=way,
            measurement=ending.measurement,
            why_not="" if ending.measurement else why_not,
            seconds=round(time.monotonic() - began, 1),
            commit=_commit(),
            date=datetime.now(UTC).date().isoformat(),
            setting=self._setting,
        )

    def _write(self) -> None:
        self.out.with_suffix(".md").write_text(table(list(self.rows.values())))
        whole = self._file.with_suffix(".new")
        whole.write_text("".join(row.model_dump_json() + "\n" for row in self.rows.values()))
        # an interrupt must not leave half a file
        whole.replace(self._file)


def _status(command: list[str], limit_s: float) -> int | None:
    """Run a command in a session of its own and return its exit status; None where it was killed at its limit."""
    # NVML counts in this order, and CUDA by itself does not
    environment = os.environ | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # compilers that it started, too
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _commit() -> str:
    root = Path(__file__).parents[2]
    with contextlib.suppress(OSError):
        command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def jobs(only: Sequence[str]) -> list[Job]:
    """List cases and ways, those whose names hold one of the texts where any is given."""
    every = [(case.name, way) for case in CASES for way in case.ways]
    return [job for job in every if not only or any(text in " / ".join(job) for text in only)]


def _measuring(job: Job, out: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.kernels.matmul_measurement", *job, str(out)]


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a file ending in .md or .jsonl; both are written")
    parser.add_argument("--seconds", type=float, default=0, help="end after this long, to be gone on with; 0 sets no limit")
    parser.add_argument("--limit", type=float, default=90, help="seconds that one way of one product may take; 90 by default")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="rows whose 'size / way' holds one of these")
    parser.add_argument("--list", action="store_true", help="show the rows and measure nothing; needs no GPU")
    options = parser.parse_args()
    wanted = jobs(options.only)
    if not wanted:
        parser.error("--only leaves nothing: --list shows what there is")
    if options.list:
        print("\n".join(" / ".join(job) for job in wanted))
        return
    if options.out is None or options.out.suffix not in (".md", ".jsonl"):
        parser.error("--out needs a file that ends in .md or .jsonl")
    if options.limit <= 0 or options.seconds < 0:
        parser.error("--limit is above 0 and --seconds not below")
    titles = list(visible_devices().values())
    if not titles:
        parser.error("this machine has no NVIDIA GPU: --list needs none")
    found = {name: version(name) for name in ("torch", "triton")}
    setting = Setting(device=titles[0], driver=driver_version() or "unknown", python=sys.version.split()[0], **found)
    run = Run(options.out.resolve(), setting, _measuring)
    if strangers := run.strangers():
        parser.error(f"{options.out} holds what was measured on {strangers[0].model_dump()}: give another --out")
    raise SystemExit(0 if run.go(wanted, options.limit, options.seconds) else 1)


if __name__ == "__main__":
    main()
