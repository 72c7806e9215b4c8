"""Writes the tables of KernelBench's page from a bench's rows, and says what of them a page lacks.

Usage: python -m benchmarks.kernelbench_tables docs/results/kernelbench [--check docs/results/kernelbench.md]

A problem without a kernel counts 1.00 in the means, as does one whose kernel is slower than what it is held against: its user keeps that.
Exit status 1 where `--check` finds a line that the page lacks.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row

FLOOR = 1.01
"""Gain from which on a problem counts as faster."""
AFTER = (1, 2, 4)
"""Evaluations after which the share of the gain is given."""
HEAD = (
    "| problems | judged | kernels delivered | faster than the better baseline (1.01x) | geomean against eager | "
    "against the better of eager and torch.compile | arithmetic means | of the (log) gain found, after 1, 2, 4 evaluations | "
    "evaluations, GPU s a problem |",
    "|" + "---|" * 9,
)
PROBLEM_HEAD = (
    "| problem | eager, µs | torch.compile, µs | ours, µs | against eager | against the better | "
    "after 1 evaluation | ours over the roofline |",
    "|" + "---|" * 8,
)


def main() -> None:
    """Print the tables, or what a page lacks of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder",
        type=Path,
        help="level1.jsonl, level2.jsonl and level3.jsonl, and what benchmarks.admitted said of the problems: admitted.jsonl",
    )
    parser.add_argument("--check", type=Path, help="a page that should hold every line")
    options = parser.parse_args()
    marked = {row["problem"] for row in KeptRows(options.folder / "admitted.jsonl").rows if row["marks"]}
    lines = tables({number: KeptRows(options.folder / f"level{number}.jsonl").rows for number in (1, 2, 3)}, marked)
    if not options.check:
        print("\n".join(lines))
        return
    page = set(options.check.read_text().splitlines())
    missing = [line for line in lines if line not in page]
    print("\n".join(missing) or "The page has every line.")
    sys.exit(bool(missing))


def tables(levels: dict[int, list[Row]], marked: Collection[str] = ()) -> list[str]:
    """Write the table of levels, with the problems that admission marked apart, then the problems of each."""
    lines = list(HEAD)
    for number, rows in levels.items():
        lines.append(summary(f"level {number}", rows, bold="**"))
        lines.append(summary("– development", [row for row in rows if row["number"] % 3 == 1]))
        lines.append(summary("– held out", [row for row in rows if row["number"] % 3 != 1]))
        for name, wanted in (("– not marked by admission", False), ("– marked by admission", True)):
            part = [row for row in rows if (row["problem"] in marked) is wanted]
            lines += [summary(name, part)] if part and marked else []
    for number, rows in levels.items():
        lines += ["", f"## Level {number}", "", *PROBLEM_HEAD, *map(problem, sorted(rows, key=lambda row: row["number"]))]
    return lines


def summary(name: str, rows: Sequence[Row], bold: str = "") -> str:
    """Write one line of the table of levels."""
    kernels = [row for row in rows if row["status"] == "kernel"]
    eager, better = ([max(gain, 1.0) for gain in _gains(rows, side)] for side in ("eager", "better"))
    unjudged = [str(row["number"]) for row in rows if not row["baselines_us"]]
    judged = f"{len(rows)} (number {', '.join(unjudged)} cannot be judged)" if unjudged and bold else str(len(rows))
    cells = [
        name,
        judged,
        str(len(kernels)),
        str(sum(gain >= FLOOR for gain in _gains(kernels, "better"))),
        f"{bold}{_geometric(eager):.2f}x{bold}",
        f"{bold}{_geometric(better):.2f}x{bold}",
        f"{statistics.mean(eager):.2f}x, {statistics.mean(better):.2f}x",
        ", ".join(f"{share:.0%}".replace("%", " %") for share in _shares(rows)),
        f"{statistics.mean(row['spent']['evaluations'] for row in rows):.1f}, {statistics.mean(row['spent']['gpu_s'] for row in rows):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def problem(row: Row) -> str:
    """Write one problem's line."""
    name, baselines = row["problem"].split("/")[1].replace("_", " ", 1), row["baselines_us"]
    if not baselines:
        return f"| {name} | – | – | – | – | cannot be judged | – | – |"
    times = [f"{baselines[side]:.0f}" if side in baselines else "–" for side in ("eager", "compile")]
    after = f"{row['curve'][0]['speedup']:.2f}x" if row["curve"] else "–"
    if row["status"] != "kernel":
        return f"| {name} | {' | '.join(times)} | – | – | reference kept | {after} | – |"
    ((eager,), (better,)) = (_gains([row], side) for side in ("eager", "better"))
    gains = f"{eager:.2f}x | {better:.2f}x | {after} | {row['candidate_us'] / row['floor_us']:.1f}"
    return f"| {name} | {' | '.join(times)} | {row['candidate_us']:.0f} | {gains} |"


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
