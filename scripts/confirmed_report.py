"""Sums up what the whole evaluator said of kernels of KernelBench, beside the lab's rows of the same problems.

Usage: python -m scripts.confirmed_report docs/results/kernelbench

Of each problem the last first choice of the cost model that has a verdict counts; a problem without one that passes, or whose kernel is
not faster than eager, counts 1.00 in the means of a level, for its reference is kept. Times are of `confirmed.jsonl`, each measured in the
sitting of its row; `expected_us` there is what the model had said of the same kernel before anything ran. A second table has the fastest
kernel of each problem that passed, first choice or delivered by a search. Kernels judged under different policies have tables of their own.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row, policy_of
from tools.policies import load_policy
from tools.records import Verdict
from tools.tuning.ranks import spearman

FIRST = "first choice of the cost model"
FEW = 4
"""Kernels of a family from which on a rank correlation is printed."""
FLOOR = 1.01
"""Gain from which on a bench delivers a kernel."""


def main() -> None:
    """Print one table, and how well the model had ranked what was timed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="level1.jsonl, level2.jsonl, level3.jsonl and confirmed.jsonl")
    folder = parser.parse_args().folder
    judged = KeptRows(folder / "confirmed.jsonl").rows
    levels = {number: KeptRows(folder / f"level{number}.jsonl").rows for number in (1, 2, 3)}
    for policy in dict.fromkeys(map(policy_of, judged)):
        print(f"Policy `{policy}`: kernels and baselines with {load_policy(policy).precision}.\n")
        print(report([row for row in judged if policy_of(row) == policy], levels), end="\n\n")


def report(judged: Sequence[Row], levels: dict[int, list[Row]]) -> str:
    """Write the table and the correlations."""
    first = [row for row in judged if row["kernel"] == FIRST or "expected_us" in row]
    last = {row["problem"]: row for row in first if row["verdict"] != Verdict.INFRASTRUCTURE}
    lines = ["| level | kernels | pass | eager | lab | better | lab | whole level: eager, better | delivered, faster than the better |"]
    lines.append("|" + "---|" * 9)
    for number, rows in levels.items():
        mine = [last[row["problem"]] for row in rows if row["problem"] in last]
        passed = [row for row in mine if row["verdict"] == Verdict.PASS]
        sides = [[(row["speedups"]["eager"][0], _better(row)) for row in passed]]
        sides.append([(row["bench"]["eager"], min(row["bench"].values())) for row in passed])
        means = [f"{_mean(pair[place] for pair in side):.2f}x" for place in (0, 1) for side in sides]
        lines.append(f"| {number} | {len(mine)} | {len(passed)} | {' | '.join(means)} | {_whole(sides[0], len(rows))} |")
    lines += ["", "| level | problems with a kernel that passed | the fastest of each: eager, better | delivered, faster than the better |"]
    lines.append("|" + "---|" * 4)
    best = fastest(judged)
    for number, rows in levels.items():
        found = [best[row["problem"]] for row in rows if row["problem"] in best]
        lines.append(f"| {number} | {len(found)} | {_whole([(row['speedups']['eager'][0], _better(row)) for row in found], len(rows))} |")
    lines += [f"\nFlags of {name}, the reference by itself: {_under(best.values(), name)}." for name in _other_policies(best.values())]
    timed = [row for row in judged if "us" in row and "expected_us" in row]
    lines += [
        "",
        *(_ranked(f"level {number}", [row for row in timed if row["problem"].startswith(f"level{number}/")]) for number in levels),
    ]
    family = {row["problem"]: row["families"][0] for row in levels.get(1, ()) if row.get("families")}
    by_family: dict[str, list[Row]] = {}
    for row in {row["problem"]: row for row in timed}.values():
        by_family.setdefault(family.get(row["problem"], ""), []).append(row)
    lines += [_ranked(f"level 1, {name}, one a problem", rows) for name, rows in sorted(by_family.items()) if name and len(rows) >= FEW]
    ratios = {row["problem"].split("_")[0]: row["us"] / row["bench_us"] for row in last.values() if "us" in row}
    alike, slow = sum(0.93 <= ratio <= 1.15 for ratio in ratios.values()), [name for name, ratio in ratios.items() if ratio >= 1.5]
    lines += [_ranked("all", timed), "", f"Over the lab's time: {statistics.median(ratios.values()):.3f} in the median of {len(ratios)}."]
    lines.append(f"0.93 to 1.15: {alike}; 1.5 and more: {len(slow)}, {', '.join(slow)}.")
    return "\n".join(lines)


def _other_policies(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.get("other_baselines_us", {})))


def _under(rows: Iterable[Row], policy: str) -> str:
    """Write the mean gain of kernels over the fastest baseline under another policy's flags, a loss counting as what it is."""
    gains = [min(times.values()) / row["us"] for row in rows if (times := row.get("other_baselines_us", {}).get(policy))]
    return f"{_mean(gains):.2f}x over the fastest of them, {len(gains)} problems"


def _whole(gains: Sequence[tuple[float, float]], problems: int) -> str:
    """Write a level's means, and how many kernels count in them: the reference is kept where there is none, or none faster than eager."""
    kept = [pair for pair in gains if pair[0] >= FLOOR]
    whole = [f"{_mean([*(pair[place] for pair in kept), *[1.0] * (problems - len(kept))]):.2f}x" for place in (0, 1)]
    return f"{', '.join(whole)} | {len(kept)}, {sum(pair[1] >= FLOOR for pair in kept)}"


def fastest(judged: Iterable[Row]) -> dict[str, Row]:
    """Find the fastest kernel of each problem that passed, whoever chose it."""
    passed = [row for row in judged if row["verdict"] == Verdict.PASS and "us" in row]
    return {row["problem"]: row for row in sorted(passed, key=lambda row: -float(row["us"]))}


def _better(row: Row) -> float:
    return float(min(gain[0] for gain in row["speedups"].values()))


def _ranked(name: str, rows: Sequence[Row]) -> str:
    expected, measured = ([row[field] for row in rows] for field in ("expected_us", "us"))
    ratio = _mean(a / b for a, b in zip(expected, measured, strict=True))
    return f"{name}: {len(rows)} kernels, Spearman {spearman(expected, measured):.2f}, modelled over measured {ratio:.2f}"


def _mean(values: Iterable[float]) -> float:
    return math.exp(statistics.mean(math.log(value) for value in values))


if __name__ == "__main__":
    main()
