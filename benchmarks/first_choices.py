"""Writes the cost model's first choice for each problem of a suite, without evaluating anything, as kernels to be judged elsewhere.

Usage: python -m benchmarks.first_choices SUITE OUT --rows ROWS.jsonl … [--problems 1-20,7] [--device h200]

ROWS are a bench's rows of the suite (docs/results/kernelbench): problems that ended with a kernel there are taken, and their figures stand
beside the new ones. OUT becomes a folder that `benchmarks.confirm_kernels` reads. What is written stays: the same command goes on. Problem
files are read in this process: point it only at suites you trust.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from agents.coder.modelled import choices_of
from agents.coder.traced import traced_graph
from benchmarks.kept_rows import KeptRows, Row
from tools.codegen import LoweringError, emit
from tools.errors import UserError
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.problems.suite import open_suite, select
from tools.records import HardwareSheet


def main() -> None:
    """Write what has no kernel yet, problem by problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=Path, nargs="+", required=True, help="a bench's results as JSON lines")
    parser.add_argument("--problems", default="", help="of those in the rows: numbers, ranges, names with *, 1%%3")
    parser.add_argument("--device", default="h200", help="the hardware sheet of the cost model")
    given = parser.parse_args()
    try:
        write(given.suite, given.out, given.rows, given.problems, load_sheet(given.device))
    except UserError as error:
        parser.error(str(error))


def write(suite: Path, out: Path, files: Sequence[Path], wanted: str, sheet: HardwareSheet) -> None:
    """Write kernels of the problems in some files of rows, those that `wanted` names as --problems does."""
    for file in files:
        if not file.is_file():
            raise UserError(f"There is no {file}.", "Name rows of a bench, as in docs/results/kernelbench/level1.jsonl.")
    rows = sorted((row for file in files for row in KeptRows(file).rows), key=lambda row: (row["number"], row["problem"]))
    items = open_suite(suite).items
    problems = {item.name: item.file for item in select(items, wanted)}
    known = {item.name for item in items}
    if missing := [row["problem"] for row in rows if row["problem"] not in known]:
        raise UserError(f"{suite} has no {missing[0]}.", "Name the suite that the rows are of.")
    out.mkdir(parents=True, exist_ok=True)
    kept = KeptRows(out / "results-first.jsonl")
    done = {row["problem"] for row in kept.rows}
    for row in rows:
        if row["status"] == "kernel" and row["problem"] in problems and row["problem"] not in done:
            kept.add(_written(problems[row["problem"]], out, row, sheet))


def _written(reference: Path, out: Path, row: Row, sheet: HardwareSheet) -> Row:
    """Write one kernel; of a problem without any the row says why."""
    began = time.monotonic()
    name = row["problem"].replace("/", "-")
    new: Row = {key: row[key] for key in ("problem", "number", "candidate_us", "speedups")} | {"run": name, "status": "kernel"}
    try:
        problem = load_problem(reference)
        choices = choices_of(problem, sheet)
        if not choices:
            raise LoweringError("the model has no choice")
        source = emit(problem, traced_graph(problem), choices[0].schedule).source
    except (UserError, LoweringError) as error:
        print(f"{row['problem']}: nothing written: {error}", flush=True)
        return new | {"status": "reference", "reason": str(error)}
    file = out / "home" / "runs" / name / "result" / "kernel.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    print(
        f"{row['problem']}: {choices[0].us:.0f} µs expected, {row['candidate_us']:.0f} µs in the rows; {time.monotonic() - began:.1f} s",
        flush=True,
    )
    return new | {"expected_us": choices[0].us, "made": choices[0].made}


if __name__ == "__main__":
    main()
