"""Writes what prepacked weights are worth on KernelBench: a table of levels for the page, and a file of problems beside it.

Usage: python -m scripts.packed_report docs/results/kernelbench [--check]

`packed.jsonl` has what the whole evaluator said of kernels with a packing step, `confirmed.jsonl` of kernels without one. Of each problem
the fastest that passed counts, and in the means of a level the faster of its two kinds; where neither is faster than eager the reference is
kept and counts 1.00. `folded.jsonl` has problems in eval mode (`benchmarks.kernelbench.eval_suite`), with their batch norms folded into
prepacked weights and, where that was judged too, without. The files of problems are `prepacked.csv` and `eval-mode.csv`. Exit status 1
where `--check` finds that a page or a file lacks a line.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row
from scripts.confirmed_report import FLOOR, fastest
from scripts.kernelbench_tables import page_lines

LEVEL_HEAD = (
    "| level | problems | theirs without: eager, better | theirs prepacked: eager, better | "
    "level without: eager, better | level with the faster of both: eager, better, faster than the better |",
    "|" + "---|" * 6,
)
FOLDED_HEAD = ("| level | problems | eager, better | faster than the better |", "|" + "---|" * 4)
PROBLEM_HEAD = (
    "problem",
    "eager_us",
    "compile_us",
    "not_prepacked_us",
    "prepacked_us",
    "against_eager",
    "against_the_better",
    "packing_us",
    "calls_that_pay_against_not_prepacked",
    "calls_that_pay_against_the_better",
)


def main() -> None:
    """Write the files and print the tables, or what the folder lacks of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="level1.jsonl, level2.jsonl, level3.jsonl, confirmed.jsonl, packed.jsonl, folded.jsonl")
    parser.add_argument("--check", action="store_true", help="look for every line in the folder instead")
    given = parser.parse_args()
    lines, files = all_of(given.folder)
    if not given.check:
        for name, text in files.items():
            (given.folder / name).write_text(text)
        print("\n".join(lines))
        return
    missing = [line for line in lines if line not in page_lines(given.folder)]
    missing += [name for name, text in files.items() if (given.folder / name).read_text() != text]
    print("\n".join(missing) or "The folder has every line.")
    sys.exit(bool(missing))


def all_of(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Make the lines of the pages and the files of problems from a folder's rows."""
    sizes = {number: len(KeptRows(folder / f"level{number}.jsonl").rows) for number in (1, 2, 3)}
    plain, packed = (fastest(KeptRows(folder / f"{name}.jsonl").rows) for name in ("confirmed", "packed"))
    rows = KeptRows(folder / "folded.jsonl").rows
    files = {"prepacked.csv": problems(plain, packed), "eval-mode.csv": problems(*by_packing(rows))}
    return [*tables(sizes, plain, packed), *folded_table(rows)], files


def tables(sizes: Mapping[int, int], plain: Mapping[str, Row], packed: Mapping[str, Row]) -> list[str]:
    """Write the table of levels, of which `sizes` tells how many problems each has."""
    lines = list(LEVEL_HEAD)
    for number, size in sizes.items():
        level = f"level{number}/"
        names = [name for name in packed if name.startswith(level)]
        known = [name for name in names if name in plain]
        before = [row for name, row in plain.items() if name.startswith(level)]
        both = [min(rows, key=lambda row: float(row["us"])) for rows in _together(level, plain, packed)]
        if not names:
            continue
        sides = [_pair([source[name] for name in known]) for source in (plain, packed)]
        count = sum(_gains(row)[1] >= FLOOR for row in both)
        lines.append(f"| {number} | {len(names)} | {sides[0]} | {sides[1]} | {_whole(before, size)} | **{_whole(both, size)}**, {count} |")
    return lines


def by_packing(rows: Sequence[Row]) -> tuple[dict[str, Row], dict[str, Row]]:
    """Find the fastest kernel of each problem that packs nothing, and the fastest that packs."""
    plain, packed = (fastest([row for row in rows if ("packing_us" in row) == packs]) for packs in (False, True))
    return plain, packed


def folded_table(rows: Sequence[Row]) -> list[str]:
    """Write the table of levels in eval mode: kernels with folded norms are those that pack."""
    folded = by_packing(rows)[1]
    lines = list(FOLDED_HEAD)
    for number in (1, 2, 3):
        mine = [row for name, row in folded.items() if name.startswith(f"level{number}/")]
        if mine:
            lines.append(f"| {number} | {len(mine)} | {_pair(mine)} | {sum(_gains(row)[1] >= FLOOR for row in mine)} |")
    return lines


def problems(plain: Mapping[str, Row], packed: Mapping[str, Row]) -> str:
    """Write a line of comma-separated values for each problem that has a kernel that packs; empty where a figure does not exist."""
    names = sorted(packed, key=lambda name: (name.split("/")[0], packed[name]["number"]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PROBLEM_HEAD)
    writer.writerows(_problem(packed[name], plain.get(name)) for name in names)
    return text.getvalue()


def _problem(row: Row, plain: Row | None) -> list[str]:
    baselines = [f"{row['baselines_us'][side]:.0f}" if side in row["baselines_us"] else "" for side in ("eager", "compile")]
    ours = f"{plain['us']:.0f}" if plain else ""
    gains = [f"{gain:.2f}" for gain in _gains(row)]
    paid = [_calls(row, plain["us"] if plain else None), _calls(row, min(row["baselines_us"].values()))]
    return [row["problem"], *baselines, ours, f"{row['us']:.0f}", *gains, f"{row['packing_us']:.0f}", *paid]


def _calls(row: Row, other_us: float | None) -> str:
    """Say how many calls pay for packing against something slower; nothing where nothing is gained."""
    if other_us is None or other_us <= row["us"]:
        return ""
    return str(math.ceil(row["packing_us"] / (other_us - row["us"])))


def _together(level: str, *sources: Mapping[str, Row]) -> list[list[Row]]:
    names = dict.fromkeys(name for source in sources for name in source if name.startswith(level))
    return [[source[name] for source in sources if name in source] for name in names]


def _gains(row: Row) -> tuple[float, float]:
    return float(row["speedups"]["eager"][0]), float(min(gain[0] for gain in row["speedups"].values()))


def _pair(rows: Sequence[Row]) -> str:
    return ", ".join(f"{_mean([_gains(row)[place] for row in rows]):.2f}x" for place in (0, 1)) if rows else "–"


def _whole(rows: Sequence[Row], size: int) -> str:
    kept = [_gains(row) for row in rows if _gains(row)[0] >= FLOOR]
    return ", ".join(f"{_mean([*(pair[place] for pair in kept), *[1.0] * (size - len(kept))]):.2f}x" for place in (0, 1))


def _mean(values: Sequence[float]) -> float:
    return math.exp(statistics.mean(math.log(value) for value in values))


if __name__ == "__main__":
    main()
