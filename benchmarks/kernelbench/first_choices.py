"""Writes the cost model's first choice for each problem of a suite, without evaluating anything, as kernels to be judged elsewhere.

Usage: python -m benchmarks.kernelbench.first_choices SUITE OUT --rows ROWS.jsonl … [--problems 1-20,7] [--device h200] [--weights changing]
       [--policy exact]

ROWS are a bench's rows of the suite (docs/results/kernelbench): problems that ended with a kernel there are taken, and their figures stand
beside the new ones; a suite may have a part of them only. OUT becomes a folder that `benchmarks.kernelbench.confirm_kernels` reads. What is
written stays: the same command goes on. With `--weights changing` nothing is made of weights once for all calls. Problem files are read in
this process: point it only at suites you trust.
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
from tools.policies import load_policy, policy_names
from tools.problems import load_problem, with_changing_weights
from tools.problems.suite import open_suite, select
from tools.records import DEFAULT_POLICY, HardwareSheet, PrecisionPolicy


def main() -> None:
    """Write what has no kernel yet, problem by problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=Path, nargs="+", required=True, help="a bench's results as JSON lines")
    parser.add_argument("--problems", default="", help="of those in the rows: numbers, ranges, names with *, 1%%3")
    parser.add_argument("--device", default="h200", help="the hardware sheet of the cost model")
    parser.add_argument("--weights", choices=["fixed", "changing"], default="fixed", help="as of a bench")
    parser.add_argument("--policy", choices=policy_names(), default="default", help="as for `kernelwright optimize`")
    given = parser.parse_args()
    try:
        write(
            given.suite,
            given.out,
            given.rows,
            given.problems,
            load_sheet(given.device),
            changing=given.weights == "changing",
            policy=load_policy(given.policy),
        )
    except UserError as error:
        parser.error(str(error))


def write(
    suite: Path,
    out: Path,
    files: Sequence[Path],
    wanted: str,
    sheet: HardwareSheet,
    *,
    changing: bool = False,
    policy: PrecisionPolicy = DEFAULT_POLICY,
) -> None:
    """Write kernels of the problems in some files of rows, those that `wanted` names as --problems does; weights may be `changing`."""
    for file in files:
        if not file.is_file():
            raise UserError(f"There is no {file}.", "Name rows of a bench, as in docs/results/kernelbench/level1.jsonl.")
    rows = sorted((row for file in files for row in KeptRows(file).rows), key=lambda row: (row["number"], row["problem"]))
    items = open_suite(suite).items
    problems = {item.name: item.file for item in select(items, wanted)}
    known = {item.name for item in items}
    missing = [row["problem"] for row in rows if row["problem"] not in known]
    if missing and len(missing) == len(rows):
        raise UserError(f"{suite} has no {missing[0]}, nor any other problem of the rows.", "Name the suite that the rows are of.")
    if missing:
        print(f"{len(missing)} of {len(rows)} rows are of problems that {suite} lacks.", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    kept = KeptRows(out / "results-first.jsonl")
    done = {row["problem"] for row in kept.rows}
    for row in rows:
        if row["status"] == "kernel" and row["problem"] in problems and row["problem"] not in done:
            kept.add(_written(problems[row["problem"]], out, row, sheet, changing=changing, policy=policy))


def _written(reference: Path, out: Path, row: Row, sheet: HardwareSheet, *, changing: bool, policy: PrecisionPolicy) -> Row:
    """Write one kernel; of a problem without any the row says why."""
    began = time.monotonic()
    name = row["problem"].replace("/", "-")
    new: Row = {key: row[key] for key in ("problem", "number", "candidate_us", "speedups")} | {"run": name, "status": "kernel"}
    try:
        problem = load_problem(reference, policy)
        problem = with_changing_weights(problem) if changing else problem
        choices = choices_of(problem, sheet)
        if not choices:
            raise LoweringError("the model has no choice")
        choice = choices[0]
        source = emit(problem, traced_graph(problem), choice.schedule).source
    except (UserError, LoweringError) as error:
        print(f"{row['problem']}: nothing written: {error}", flush=True)
        return new | {"status": "reference", "reason": str(error)}
    file = out / "home" / "runs" / name / "result" / "kernel.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    print(
        f"{row['problem']}: {choice.us:.0f} µs expected, {row['candidate_us']:.0f} µs in the rows; {time.monotonic() - began:.1f} s",
        flush=True,
    )
    return new | {"expected_us": choice.us, "made": choice.made}


if __name__ == "__main__":
    main()
