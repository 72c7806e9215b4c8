"""Writes the tables of KernelBench's page that show kernels whose weights are packed once, beside those that pack nothing.

Usage: python -m benchmarks.packed_report docs/results/kernelbench [--check docs/results/kernelbench.md]

`packed.jsonl` has what the whole evaluator said of kernels with a packing step, `confirmed.jsonl` of kernels without one. Of each problem
the fastest that passed counts, and in the means of a level the faster of its two kinds; where neither is faster than eager the reference
is kept and counts 1.00. `folded.jsonl` has problems in eval mode (`benchmarks.eval_suite`), with their batch norms folded into packed
weights and, where that was judged too, without; the last table is of those. Exit status 1 where `--check` finds a line that the page lacks.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.confirmed_report import FLOOR, fastest
from benchmarks.kept_rows import KeptRows, Row

LEVEL_HEAD = (
    "| level | problems with such a kernel | theirs without it: eager, better | theirs packed: eager, better | "
    "whole level without: eager, better | whole level with the faster of both: eager, better, problems faster than the better |",
    "|" + "---|" * 6,
)
PROBLEM_HEAD = (
    "| problem | eager, µs | torch.compile, µs | ours, nothing packed, µs | ours, packed, µs | against eager | against the better | "
    "packing, µs | calls that pay for it: against ours, against the better |",
    "|" + "---|" * 9,
)
FOLDED_HEAD = ("| level, in eval mode | problems with a norm that folds | eager, better | faster than the better |", "|" + "---|" * 4)


def main() -> None:
    """Print the tables, or what a page lacks of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="level1.jsonl, level2.jsonl, level3.jsonl, confirmed.jsonl, packed.jsonl, folded.jsonl")
    parser.add_argument("--check", type=Path, help="a page that should hold every line")
    given = parser.parse_args()
    sizes = {number: len(KeptRows(given.folder / f"level{number}.jsonl").rows) for number in (1, 2, 3)}
    plain, packed = (fastest(KeptRows(given.folder / f"{name}.jsonl").rows) for name in ("confirmed", "packed"))
    lines = [*tables(sizes, plain, packed), "", *folded_tables(KeptRows(given.folder / "folded.jsonl").rows)]
    if not given.check:
        print("\n".join(lines))
        return
    page = set(given.check.read_text().splitlines())
    missing = [line for line in lines if line not in page]
    print("\n".join(missing) or "The page has every line.")
    sys.exit(bool(missing))


def tables(sizes: Mapping[int, int], plain: Mapping[str, Row], packed: Mapping[str, Row]) -> list[str]:
    """Write the table of levels, of which `sizes` tells how many problems each has, and the table of problems."""
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
    return [*lines, "", *_problems(plain, packed)]


def folded_tables(rows: Sequence[Row]) -> list[str]:
    """Write the tables of problems in eval mode: kernels with folded norms are those that pack, the others pack nothing."""
    plain, folded = (fastest([row for row in rows if ("packing_us" in row) == packs]) for packs in (False, True))
    lines = list(FOLDED_HEAD)
    for number in (1, 2, 3):
        mine = [row for name, row in folded.items() if name.startswith(f"level{number}/")]
        if mine:
            lines.append(f"| {number} | {len(mine)} | {_pair(mine)} | {sum(_gains(row)[1] >= FLOOR for row in mine)} |")
    return [*lines, "", *_problems(plain, folded)]


def _problems(plain: Mapping[str, Row], packed: Mapping[str, Row]) -> list[str]:
    names = sorted(packed, key=lambda name: (name.split("/")[0], packed[name]["number"]))
    return [*PROBLEM_HEAD, *(_problem(packed[name], plain.get(name)) for name in names)]


def _problem(row: Row, plain: Row | None) -> str:
    level, title = row["problem"].split("/")
    number, _, words = title.partition("_")
    baselines = [f"{row['baselines_us'][side]:.0f}" if side in row["baselines_us"] else "–" for side in ("eager", "compile")]
    eager, better = _gains(row)
    paid = [_calls(row, plain["us"] if plain else None), _calls(row, min(row["baselines_us"].values()))]
    ours = f"{plain['us']:.0f}" if plain else "–"
    where = f"{level.removeprefix('level')}: {number} {words}"
    gains = f"{row['us']:.0f} | {eager:.2f}x | {better:.2f}x | {row['packing_us']:.0f}"
    return f"| {where} | {' | '.join(baselines)} | {ours} | {gains} | {', '.join(paid)} |"


def _calls(row: Row, other_us: float | None) -> str:
    """Say how many calls pay for packing against something slower; a dash where nothing is gained."""
    if other_us is None or other_us <= row["us"]:
        return "–"
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
