"""Writes KernelBench's table of levels and its file of problems from rows, or says what of them the folder lacks.

Usage: python -m scripts.kernelbench_tables docs/results/kernelbench [--check]

The table of levels is of a bench's rows, judged by the lab. A problem without a kernel counts 1.00 in its means, as does one whose kernel
is slower than what it is held against: its user keeps that. The file of problems, `problems.csv`, is of the whole evaluator's rows: of each
problem the fastest kernel that passed, and the baselines timed beside it. Exit status 1 where `--check` finds a line of the table that no
page in the folder has, or another file of problems.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import statistics
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row
from scripts.confirmed_report import FLOOR, fastest

AFTER = (1, 2, 4)
"""Evaluations after which the share of the gain is given."""
HEAD = (
    "| problems | judged | kernels | faster than the better | over eager, the better | gain after 1, 2, 4 evaluations | "
    "evaluations, GPU s |",
    "|" + "---|" * 7,
)
PROBLEMS = "problems.csv"
PROBLEM_HEAD = ("problem", "eager_us", "compile_us", "kernel_us", "against_the_better", "prepacked_us", "note")

REMARKS: dict[str, dict[int, tuple[int, ...]]] = {
    "reduction pushed down": {2: (13, 14, 18, 42, 44, 51)},
    "baselines unsure": {3: (9, 19, 20, 22, 23, 36, 40, 41)},
}
"""What stands out of problems by their level and number: a sum or mean taken before a product; baselines that a busy host slows down."""


def main() -> None:
    """Write the file and print the table, or what the folder lacks of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder",
        type=Path,
        help="level1.jsonl to level3.jsonl, confirmed.jsonl, packed.jsonl, and admitted.jsonl of benchmarks.kernelbench.admitted",
    )
    parser.add_argument("--check", action="store_true", help="look for every line in the folder instead")
    options = parser.parse_args()
    lines, file = all_of(options.folder)
    if not options.check:
        (options.folder / PROBLEMS).write_text(file)
        print("\n".join(lines))
        return
    missing = [line for line in lines if line not in page_lines(options.folder)]
    missing += [PROBLEMS] if (options.folder / PROBLEMS).read_text() != file else []
    print("\n".join(missing) or "The folder has every line.")
    sys.exit(bool(missing))


def page_lines(folder: Path) -> set[str]:
    """Gather the lines of every page in a folder."""
    return {line for page in folder.glob("*.md") for line in page.read_text().splitlines()}


def all_of(folder: Path) -> tuple[list[str], str]:
    """Make the table of levels and the file of problems from the rows of a folder."""
    levels = {number: KeptRows(folder / f"level{number}.jsonl").rows for number in (1, 2, 3)}
    judged, packed = (fastest(KeptRows(folder / f"{name}.jsonl").rows) for name in ("confirmed", "packed"))
    marked = {row["problem"] for row in KeptRows(folder / "admitted.jsonl").rows if row["marks"]}
    ordered = [row for rows in levels.values() for row in sorted(rows, key=lambda row: row["number"])]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PROBLEM_HEAD)
    writer.writerows(problem(row, judged, packed, marked) for row in ordered)
    return summaries(levels, marked), text.getvalue()


def summaries(levels: Mapping[int, Sequence[Row]], marked: Collection[str] = ()) -> list[str]:
    """Write the table of levels, with the problems that admission marked apart."""
    lines = list(HEAD)
    for number, rows in levels.items():
        lines.append(summary(f"level {number}", rows))
        lines.append(summary("– held out", [row for row in rows if row["number"] % 3 != 1]))
        apart = [row for row in rows if row["problem"] in marked]
        lines += [summary("– marked by admission", apart)] if apart else []
    return lines


def summary(name: str, rows: Sequence[Row]) -> str:
    """Write one line of the table of levels."""
    kernels = [row for row in rows if row["status"] == "kernel"]
    eager, better = ([max(gain, 1.0) for gain in _gains(rows, side)] for side in ("eager", "better"))
    cells = [
        name,
        str(len(rows)),
        str(len(kernels)),
        str(sum(gain >= FLOOR for gain in _gains(kernels, "better"))),
        f"{_geometric(eager):.2f}x, {_geometric(better):.2f}x",
        ", ".join(f"{share:.0%}".replace("%", " %") for share in _shares(rows)),
        f"{statistics.mean(row['spent']['evaluations'] for row in rows):.1f}, {statistics.mean(row['spent']['gpu_s'] for row in rows):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def problem(row: Row, judged: Mapping[str, Row], packed: Mapping[str, Row], marked: Collection[str] = ()) -> list[str]:
    """List one problem's values: the fastest kernel that the whole evaluator passed, where it beats eager, else the baselines alone."""
    best, prepacked = judged.get(row["problem"]), packed.get(row["problem"])
    baselines = (best or row)["baselines_us"]
    times = [f"{baselines[side]:.0f}" if baselines else "" for side in ("eager", "compile")]
    if best and best["speedups"]["eager"][0] >= FLOOR:
        ours, notes = [f"{best['us']:.0f}", f"{min(gain[0] for gain in best['speedups'].values()):.2f}"], []
    else:
        ours, notes = ["", ""], ["reference kept" if baselines else "cannot be judged"]
    notes += [remark for remark, levels in REMARKS.items() if row["number"] in levels.get(int(row["problem"][5]), ())]
    notes += ["marked"] if row["problem"] in marked else []
    return [row["problem"], *times, *ours, f"{prepacked['us']:.0f}" if prepacked else "", ", ".join(notes)]


def _gains(rows: Iterable[Row], side: str) -> list[float]:
    """List how many times as fast as a side each problem's kernel is; 1 where there is none."""
    found = []
    for row in rows:
        gains = {name: float(gain[0]) for name, gain in row["speedups"].items()} if row["status"] == "kernel" else {"eager": 1.0}
        found.append(gains["eager"] if side == "eager" else min(gains.values()))
    return found


def _shares(rows: Iterable[Row]) -> list[float]:
    """Share of all problems' gain, in logarithms, that was there after so many evaluations."""
    curves = [[max(step["speedup"], 1.0) for step in row["curve"]] for row in rows if row["curve"]]
    whole = sum(math.log(max(curve)) for curve in curves)
    return [sum(math.log(max(curve[:count])) for curve in curves) / whole if whole else 1.0 for count in AFTER]


def _geometric(values: Sequence[float]) -> float:
    return math.exp(statistics.mean(math.log(value) for value in values))


if __name__ == "__main__":
    main()
