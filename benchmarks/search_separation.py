"""Asks whether a recorded landscape can tell search methods apart at all, and whether harder uses of it can.

Three uses of the same times: as recorded, and by single rungs only, both from the coder's own first schedule; and by single rungs
from the slowest schedule. What counts is the climb: the logarithm of the start's time over the best time so far, over that of the
start's time over the fastest recorded one. Problems where the start is within 5 % of the fastest are left out: nothing is to be found
there. Usage:
  python -m benchmarks.search_separation [FILE] [--budget 32] [--seeds 20] [--methods a,b] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from benchmarks.landscape_views import first_place, from_slowest, near
from graphs.search import METHODS
from graphs.search.landscape import Landscape, landscape_files, load_landscapes
from graphs.search.protocol import SearchSettings
from graphs.search.simulator import Simulation
from tools.records import Verdict

BASELINE = "random"
ROOM = 1.05
"""Time of the start over that of the fastest place, below which there is nothing to find."""
MARKS = (8, 32)
RESAMPLES = 1000
VIEWS: dict[str, Callable[[Landscape], Landscape]] = {
    "as recorded, from the first schedule": lambda landscape: landscape,
    "single rungs, from the first schedule": near,
    "single rungs, from the slowest schedule": lambda landscape: from_slowest(near(landscape)),
}


@dataclass
class Climb:
    """One search of one method on one problem with one seed."""

    view: str
    problem: str
    method: str
    seed: int
    climbed: list[float]
    """Share of the climb after 1, 2, … evaluations; carried on to the budget where the method ended before."""


def main() -> None:
    """Run and print a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--budget", type=int, default=max(MARKS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", type=Path, default=None, help="folder for climbs.jsonl and separation.txt")
    given = parser.parse_args()
    _, landscapes = load_landscapes(given.file or landscape_files()[0])
    climbs = [
        climb(name, view, method, seed, given.budget)
        for name, make in VIEWS.items()
        for view in map(make, landscapes)
        if room(view) > ROOM
        for method in given.methods.split(",")
        for seed in range(given.seeds)
    ]
    text = "\n".join([_head(given), _rooms(landscapes), *(_table(name, [c for c in climbs if c.view == name]) for name in VIEWS)])
    print(text)
    if given.out:
        (given.out / "climbs.jsonl").write_text("".join(json.dumps(_rounded(one)) + "\n" for one in climbs))
        (given.out / "separation.txt").write_text(text)


def room(landscape: Landscape) -> float:
    """Time of the first place over that of the fastest."""
    return landscape.by_id[first_place(landscape)].time_us / min(place.time_us for place in landscape.places if place.time_us)


def climb(name: str, landscape: Landscape, method: str, seed: int, budget: int) -> Climb:
    """Run one search."""
    simulation = Simulation(landscape, method, SearchSettings(seed=seed, batch=2, patience=0))
    simulation.run(budget)
    start, whole = landscape.by_id[first_place(landscape)].time_us, math.log(room(landscape))
    best, climbed = start, []
    for place, verdict in simulation.evaluated.items():
        best = min(best, landscape.by_id[place].time_us) if verdict is Verdict.PASS else best
        climbed.append(math.log(start / best) / whole)
    return Climb(name, landscape.problem, method, seed, (climbed + [climbed[-1] if climbed else 0.0] * budget)[:budget])


def _head(given: argparse.Namespace) -> str:
    """What the page is, and how it was made."""
    command = f"python -m benchmarks.search_separation --budget {given.budget} --seeds {given.seeds} --out docs/results/search-methods"
    lines = [
        "# Whether the recorded landscape tells search methods apart",
        "",
        f"Simulated searches over times that were measured; `{command}`",
        f"makes this page and `climbs.jsonl` beside it. Batch 2, {given.seeds} seeds. The landscape is",
        "that of report.txt; no place and no time is changed, only which recorded steps may be taken and where a search",
        "begins.",
        "",
        "*Climb*: the logarithm of the start's time over the best time so far, over that of the start's time over the fastest recorded",
        "one. *Area*: its mean over the evaluations. Intervals are 95 %, bootstrapped: *over seeds* for these very problems, *over",
        "problems* for others like them. Problems where the start is within 5 % of the fastest are left out: nothing is to be found there.",
        "What it means is said in docs/results/search-methods.md.",
        "",
        "First, what there is to find from the coder's first schedule:",
        "",
    ]
    return "\n".join(lines)


def _rooms(landscapes: Sequence[Landscape]) -> str:
    """What there is to find on each problem."""
    lines = ["| problem | places | first schedule over fastest | first schedule's rank | slowest over fastest |", "|---|---|---|---|---|"]
    for one in landscapes:
        times = sorted(place.time_us for place in one.places if place.time_us)
        rank = times.index(one.by_id[first_place(one)].time_us) + 1
        lines.append(f"| {one.problem} | {len(one.places)} | {room(one):.3f} | {rank} | {times[-1] / times[0]:.1f} |")
    return "\n".join([*lines, ""])


def _table(name: str, climbs: Sequence[Climb]) -> str:
    """Mean climb and area of each method, and its area minus random's with both intervals."""
    problems = list(dict.fromkeys(one.problem for one in climbs))
    heads = [f"climbed after {mark} | area to {mark} | minus random's [over seeds] [over problems]" for mark in MARKS]
    lines = [f"## {name[:1].upper()}{name[1:]}", "", f"{len(problems)} problems: {', '.join(problems)}.", ""]
    lines += ["| method | " + " | ".join(heads) + " |", "|---" * (1 + 3 * len(MARKS)) + "|"]
    for method in dict.fromkeys(one.method for one in climbs):
        own = [one for one in climbs if one.method == method]
        other = [one for one in climbs if one.method == BASELINE]
        cells = [cell for mark in MARKS for cell in _cells(own, other, mark)]
        lines.append("| " + " | ".join([method, *cells]) + " |")
    return "\n".join([*lines, ""])


def _cells(own: Sequence[Climb], other: Sequence[Climb], mark: int) -> list[str]:
    final = statistics.fmean(one.climbed[mark - 1] for one in own)
    mine, theirs = _areas(own, mark), _areas(other, mark)
    cells = [f"{final:.3f}", f"{_overall(mine):.3f}"]
    if own[0].method == BASELINE or not theirs:
        return [*cells, ""]
    rng = Random(0)
    seeds = sorted(_overall(_seeds(rng, mine)) - _overall(_seeds(rng, theirs)) for _ in range(RESAMPLES))
    gaps = [statistics.fmean(mine[problem]) - statistics.fmean(theirs[problem]) for problem in mine]
    problems = sorted(statistics.fmean(rng.choices(gaps, k=len(gaps))) for _ in range(RESAMPLES))
    ends = (int(0.025 * RESAMPLES), int(0.975 * RESAMPLES))
    shown = " ".join(f"[{drawn[ends[0]]:+.3f}, {drawn[ends[1]]:+.3f}]" for drawn in (seeds, problems))
    return [*cells, f"{_overall(mine) - _overall(theirs):+.3f} {shown}"]


def _areas(climbs: Sequence[Climb], mark: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for one in climbs:
        found.setdefault(one.problem, []).append(statistics.fmean(one.climbed[:mark]))
    return found


def _overall(areas: dict[str, list[float]]) -> float:
    return statistics.fmean(statistics.fmean(values) for values in areas.values())


def _seeds(rng: Random, areas: dict[str, list[float]]) -> dict[str, list[float]]:
    """The same problems with other draws of their seeds."""
    return {problem: rng.choices(values, k=len(values)) for problem, values in areas.items()}


def _rounded(one: Climb) -> dict[str, object]:
    return {**asdict(one), "climbed": [round(value, 3) for value in one.climbed]}


if __name__ == "__main__":
    main()
