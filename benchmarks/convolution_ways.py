"""Measures many schedules of convolutions as products of halves, and how well the cost model ranks them.

Usage: python -m benchmarks.convolution_ways OUT.jsonl PROBLEM.py… [--seconds N] [--compilers N]; rows already in OUT.jsonl are kept,
and without a GPU the page of those is printed. The problem's first choice with a convolution is varied in that convolution alone. The
lab judges (`benchmarks.lab`: no sandbox), so these are no verdicts.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.kept_rows import KeptRows, Row
from benchmarks.lab import Lab
from tools.codegen import Region, Schedule, emit, trace
from tools.codegen.schedule.knobs import worthwhile
from tools.codegen.schedule.partition import CONVOLUTION, plan_region
from tools.cost.launches import MODELLED, region_us
from tools.cost.rank_schedules import ScheduleModel, modelled_choices
from tools.hardware import detect_sheet, load_sheet
from tools.problems import load_problem
from tools.records import Problem
from tools.tuning.ranks import spearman

NAMES = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")
GRID = (
    (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 32, 8, 4), (256, 128, 32, 8, 3), (128, 256, 32, 8, 3), (256, 64, 64, 8, 2),
    (128, 64, 64, 4, 3), (128, 64, 32, 4, 4), (64, 64, 64, 4, 3), (64, 128, 64, 4, 3), (256, 64, 32, 8, 4), (128, 64, 64, 8, 3),
    (128, 32, 64, 4, 3), (256, 32, 32, 4, 3), (128, 32, 32, 4, 4), (64, 32, 32, 4, 3), (128, 16, 32, 4, 3), (256, 16, 16, 4, 3),
    (128, 128, 128, 8, 2), (128, 64, 16, 4, 3), (128, 32, 16, 4, 4),
)  # fmt: skip
"""Values of `NAMES`; what does not fit a problem is left out."""


class Case:
    """One problem and its convolution."""

    def __init__(self, file: Path) -> None:
        """Read it and find the first choice that generates a convolution."""
        self.name = file.stem
        self.problem: Problem = load_problem(file)
        self.graph = trace(self.problem)
        self.sheet = load_sheet("h200")
        choices = modelled_choices(self.graph, self.sheet, self.problem.policy)
        self.schedule = next(choice.schedule for choice in choices if self._convolution(choice.schedule))

    @staticmethod
    def _convolution(schedule: Schedule) -> Region | None:
        return next((region for region in schedule.regions if region.template == CONVOLUTION), None)

    def ways(self) -> Iterator[tuple[dict[str, Any], str, float]]:
        """Give each way's parameters, source, and modelled time of the whole call, microseconds."""
        region = self._convolution(self.schedule)
        assert region is not None
        planned = plan_region(self.graph, region.nodes)
        rest = (ScheduleModel(self.graph, self.sheet, self.problem.policy, MODELLED).schedule_us(self.schedule) or 0.0) - (
            region_us(planned, region.parameters, self.sheet) or 0.0
        )
        for numbers in GRID:
            way = {**region.parameters, "precision": "fp16x3", "accumulate": "chunked", **dict(zip(NAMES, numbers, strict=True))}
            if worthwhile(planned, way, "BLOCK_M", self.sheet):
                changed = self.schedule.replaced(region.model_copy(update={"parameters": way}))
                modelled = rest + (region_us(planned, way, self.sheet) or 0.0)
                yield dict(zip(NAMES, numbers, strict=True)), emit(self.problem, self.graph, changed).source, modelled


def measure(kept: KeptRows, files: list[Path], options: argparse.Namespace) -> None:
    """Judge what has no row yet, all problems side by side."""
    begun, known = time.monotonic(), {(row["problem"], str(row["way"])) for row in kept.rows}

    def judge(case: Case, way: dict[str, Any], source: str) -> None:
        if time.monotonic() - begun > options.seconds:
            return
        found = lab.evaluation(case.problem, source, "search")
        us = found.timing.candidate.median_us if found.timing else None
        eager = found.timing.baselines["eager"].median_us if found.timing else None
        kept.add({"problem": case.name, "way": way, "verdict": found.verdict, "us": us, "eager_us": eager})

    with TemporaryDirectory() as folder, ThreadPoolExecutor(3 * options.compilers) as pool:
        lab = Lab(Path(folder) / "lab.jsonl", "h200", compilers=options.compilers)
        try:
            for case in map(Case, files):
                for way, source, _ in case.ways():
                    if (case.name, str(way)) not in known:
                        pool.submit(judge, case, way, source)
            pool.shutdown()
        finally:
            lab.close()


def page(rows: list[Row], files: list[Path]) -> str:
    """Write a line a problem: the fastest way, the one modelled to be the fastest, and how well the model ranks all."""
    lines = [
        "| problem | ways | fastest, µs | eager, µs | gain | its way | modelled fastest takes | Spearman |",
        "|---|---|---|---|---|---|---|---|",
    ]
    cases = {case.name: case for case in map(Case, files)}
    for name, group in groupby(sorted(rows, key=lambda row: str(row["problem"])), key=lambda row: str(row["problem"])):
        modelled = {str(way): us for way, _, us in cases[name].ways()} if name in cases else {}
        ours = [row for row in group if row["us"] and str(row["way"]) in modelled]
        if not ours:
            continue
        best, first = min(ours, key=lambda row: row["us"]), min(ours, key=lambda row: modelled[str(row["way"])])
        rank = spearman([row["us"] for row in ours], [modelled[str(row["way"])] for row in ours]) if len(ours) > 2 else math.nan
        block = " x ".join(str(best["way"][key]) for key in NAMES[:3])
        how = f"{block}, {best['way']['num_warps']} warps, {best['way']['num_stages']} stages"
        lines.append(
            f"| {name} | {len(ours)} | {best['us']:.0f} | {best['eager_us']:.0f} | {best['eager_us'] / best['us']:.2f}x | {how} "
            f"| {first['us'] / best['us']:.2f}x as long | {rank:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure where there is a GPU, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("problems", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--compilers", type=int, default=12)
    options = parser.parse_args()
    kept = KeptRows(options.out)
    if detect_sheet() is not None:
        measure(kept, options.problems, options)
    print(page(kept.rows, options.problems))


if __name__ == "__main__":
    main()
