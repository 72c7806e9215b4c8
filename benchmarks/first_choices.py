"""Writes the cost model's first choice for each problem of a suite, without evaluating anything, as kernels to be judged elsewhere.

Usage: python -m benchmarks.first_choices SUITE OUT --rows ROWS.jsonl … [--problems 1-20,7] [--device h200] [--weights changing]
                                           [--fold]

ROWS are a bench's rows of the suite (docs/results/kernelbench): problems that ended with a kernel there are taken, and their figures stand
beside the new ones. OUT becomes a folder that `benchmarks.confirm_kernels` reads. What is written stays: the same command goes on. With
`--weights changing` nothing is made of weights once for all calls; `--fold` folds the batch norms of the first choice,
whatever the model expects of that.
Problem files are read in this process: point it only at suites you trust.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agents.coder.modelled import choices_of
from agents.coder.traced import traced_graph
from benchmarks.kept_rows import KeptRows, Row
from tools.codegen import LoweringError, OperatorGraph, Schedule, apply, emit
from tools.codegen.early_actions import ALGEBRA
from tools.codegen.folding_actions import FOLD_NORM, folding_actions
from tools.errors import UserError
from tools.hardware import load_sheet
from tools.problems import load_problem, with_changing_weights
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
    parser.add_argument("--weights", choices=["fixed", "changing"], default="fixed", help="as of a bench")
    parser.add_argument("--fold", action="store_true", help="its batch norms, where they can be folded and are not")
    given = parser.parse_args()
    try:
        wish = Wish(load_sheet(given.device), given.weights == "changing", given.fold)
        write(given.suite, given.out, given.rows, given.problems, wish)
    except UserError as error:
        parser.error(str(error))


class Wish(NamedTuple):
    """Which choice is written of each problem."""

    sheet: HardwareSheet
    changing: bool = False
    """Whether weights change from call to call."""
    fold: bool = False
    """Whether its batch norms are folded that are not."""


def write(suite: Path, out: Path, files: Sequence[Path], wanted: str, wish: Wish) -> None:
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
            kept.add(_written(problems[row["problem"]], out, row, wish))


def _written(reference: Path, out: Path, row: Row, wish: Wish) -> Row:
    """Write one kernel; of a problem without any the row says why."""
    began = time.monotonic()
    name = row["problem"].replace("/", "-")
    new: Row = {key: row[key] for key in ("problem", "number", "candidate_us", "speedups")} | {"run": name, "status": "kernel"}
    try:
        problem = load_problem(reference)
        problem = with_changing_weights(problem) if wish.changing else problem
        choices = choices_of(problem, wish.sheet)
        if not choices:
            raise LoweringError("the model has no choice")
        choice, graph = choices[0], traced_graph(problem)
        schedule = _folded(graph, choice.schedule, wish.sheet) if wish.fold else choice.schedule
        source = emit(problem, graph, schedule).source
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


def _folded(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> Schedule:
    """Fold all norms at once; raises LoweringError where there is none to fold."""
    action = next((one for one in folding_actions(graph, schedule, sheet) if one.parameters.get(ALGEBRA) == FOLD_NORM), None)
    if action is None:
        raise LoweringError("the first choice has no batch norm that could be folded and is not")
    return apply(graph, schedule, action)


if __name__ == "__main__":
    main()
