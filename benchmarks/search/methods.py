"""Runs every search method on recorded landscapes over seeds: curves, area under the curve, final gain, with intervals.

Nothing is evaluated: times come from the tables in benchmarks/search/landscapes, or from FILE. Usage:
  python -m benchmarks.search.methods [FILE …] [--budget 32] [--seeds 10] [--batch 2] [--methods a,b] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.search.landscape import Landscape, LandscapeHeader, landscape_files, load_landscapes
from benchmarks.search.simulator import Simulation
from graphs.search import METHODS
from graphs.search.protocol import SearchSettings

BASELINE = "random"
RESAMPLES = 1000


@dataclass
class Trial:
    """One search of one method on one problem with one seed."""

    problem: str
    method: str
    seed: int
    curve: list[float]
    """Best speed-up after 1, 2, … evaluations, at least 1; carried on to the budget where the method ended before."""
    found: float
    """Logarithm of the final speed-up over that of the best recorded one; 1 where nothing is faster than the baseline."""
    area: float
    """Mean of the same share over the budget."""
    evaluations: int


def main() -> None:
    """Run and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--budget", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", type=Path, default=None, help="folder for trials.jsonl and report.txt")
    given = parser.parse_intermixed_args()
    files = given.files or list(landscape_files())
    if not files:
        parser.exit(2, "No landscape is recorded yet: run benchmarks.search.record_landscape on a GPU, or name a file.\n")
    tables = [load_landscapes(path) for path in files]
    trials = [
        trial(landscape, method, seed, given.budget, given.batch)
        for _, landscapes in tables
        for landscape in landscapes
        for method in given.methods.split(",")
        for seed in range(given.seeds)
    ]
    text = report([header for header, _ in tables], trials, given)
    print(text)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "trials.jsonl").write_text("".join(json.dumps(_rounded(one)) + "\n" for one in trials))
        (given.out / "report.txt").write_text(text)


def _rounded(one: Trial) -> dict[str, Any]:
    """Four digits are more than a time on a device has."""
    return {name: [round(v, 4) for v in value] if name == "curve" else value for name, value in asdict(one).items()}


def trial(landscape: Landscape, method: str, seed: int, budget: int, batch: int) -> Trial:
    """Run one search; patience is off, so that every method may spend the whole budget."""
    settings = SearchSettings(seed=seed, batch=batch, patience=0)
    points = [point.best for point in Simulation(landscape, method, settings).run(budget)]
    curve = (points + [points[-1] if points else 1.0] * budget)[:budget]
    shares = [_share(value, landscape.best_speedup) for value in curve]
    return Trial(landscape.problem, method, seed, curve, shares[-1], statistics.fmean(shares), len(points))


def report(headers: Sequence[LandscapeHeader], trials: Sequence[Trial], given: argparse.Namespace) -> str:
    """Write a Markdown table, each figure with its 95 % interval, and the difference from random search paired by problem and seed."""
    methods = list(dict.fromkeys(one.method for one in trials))
    marks = [count for count in (4, 8, 16, 32, 64) if count <= given.budget]
    lines = [f"{len({t.problem for t in trials})} problems, {given.seeds} seeds, {given.budget} evaluations, batch {given.batch}. "]
    lines += [f"Times: {h.device}, {h.recorded}, {'SYNTHETIC' if h.synthetic else 'measured'}: {h.method}." for h in headers]
    head = [f"share of the best gain after {count}" for count in marks]
    lines += ["", "| method | geomean speed-up | " + " | ".join(head) + " | area under the curve | area minus random's |"]
    lines += ["|---" * (4 + len(marks)) + "|"]
    for method in methods:
        own = [t for t in trials if t.method == method]
        shares = [_interval([_share_at(t, count) for t in own], own) for count in marks]
        cells = [method, _interval([t.curve[-1] for t in own], own, geometric=True), *shares, _interval([t.area for t in own], own)]
        lines.append("| " + " | ".join([*cells, _difference(own, trials)]) + " |")
    notes = "Intervals: 95 %, bootstrap over problems. A difference whose interval holds 0 is within the noise."
    return "\n".join([*lines, "", notes]) + "\n"


def _share(value: float, best: float) -> float:
    return math.log(value) / math.log(best) if best > 1.0 else 1.0


def _share_at(one: Trial, count: int) -> float:
    last = math.log(one.curve[-1])
    return one.found * math.log(one.curve[count - 1]) / last if last else one.found


def _difference(own: Sequence[Trial], trials: Sequence[Trial]) -> str:
    other = {(t.problem, t.seed): t.area for t in trials if t.method == BASELINE}
    if not other or own[0].method == BASELINE:
        return ""
    return _interval([t.area - other[t.problem, t.seed] for t in own], own, signed=True)


def _interval(values: Sequence[float], trials: Sequence[Trial], *, geometric: bool = False, signed: bool = False) -> str:
    """Mean over problems of the mean over seeds, with the bootstrap interval over problems."""
    grouped: dict[str, list[float]] = {}
    for value, one in zip(values, trials, strict=True):
        grouped.setdefault(one.problem, []).append(math.log(value) if geometric else value)
    means = [statistics.fmean(group) for group in grouped.values()]
    rng = Random(0)
    drawn = sorted(statistics.fmean(rng.choices(means, k=len(means))) for _ in range(RESAMPLES))
    figures = [statistics.fmean(means), drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES)]]
    middle, low, high = (math.exp(one) for one in figures) if geometric else figures
    form = "+.3f" if signed else ".3f"
    return f"{middle:{form}} [{low:{form}}, {high:{form}}]"


if __name__ == "__main__":
    main()
