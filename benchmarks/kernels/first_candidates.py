"""How near the best recorded time a search comes in its first evaluations: with the cost model's choices, and by one knob at a time.

Usage: python -m benchmarks.kernels.first_candidates [FILE …] [--operators DIR] [--device h200] [--seeds 5] [--search greedy]

Nothing is evaluated: times come from the tables of `benchmarks.search.record_landscape`. Each search runs twice over each table, as it is
and with the model's choices as further actions, made among the recorded schedules alone. A figure is the best recorded time over the best
time reached after 1, 2, 4 and 8 evaluations; who has nothing faster keeps the reference.
"""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path

from agents.planner.rating import TOP_SCORE
from agents.planner.scores import CHOICE_POINTS
from benchmarks.kernels.cost_model import FITTED, OPERATORS, Operator, places_of, rank
from benchmarks.kernels.until_close import Measured
from benchmarks.search.landscape import Landscape, Step, landscape_files, load_landscapes
from benchmarks.search.simulator import Simulation
from graphs.search.protocol import SearchSettings
from tools.codegen.templates.shared.knob import Parameters
from tools.cost.choice import Choice, choice_action, chosen_number, in_order
from tools.cost.rank_schedules import MOST
from tools.cost.region_settings import Setting, spread, words_of
from tools.hardware import load_sheet
from tools.records import ROOT, HardwareSheet

MARKS = (1, 2, 4, 8)


def main() -> None:
    """Print a row for each problem, and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--operators", type=Path, default=OPERATORS)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--search", default="greedy")
    given = parser.parse_args()
    sheet = load_sheet(given.device)
    print("| problem | " + " | ".join(f"{count}: by knobs" for count in MARKS) + " | " + " | ".join(f"{n}: chosen" for n in MARKS) + " |")
    print("|---" * (1 + 2 * len(MARKS)) + "|")
    rows: list[list[float]] = []
    for path in given.files or landscape_files():
        for landscape in load_landscapes(path)[1]:
            if landscape.best_speedup > 1.0:
                chosen = with_choices(Operator.load(given.operators, landscape.problem), landscape, sheet)
                rows.append([each for one in (landscape, chosen) for each in reached(one, given.search, given.seeds)])
                marked = landscape.problem if landscape.problem in FITTED else f"{landscape.problem} (held out)"
                print(f"| {marked} | " + " | ".join(f"{each:.3f}" for each in rows[-1]) + " |", flush=True)
    means = [math.exp(statistics.fmean(math.log(value) for value in column)) for column in zip(*rows, strict=True)]
    print("| geometric mean | " + " | ".join(f"{each:.3f}" for each in means) + " |")


def reached(landscape: Landscape, search: str, seeds: int) -> list[float]:
    """Run a search; the best recorded time over the best one reached, after each of `MARKS` evaluations."""
    found = []
    for seed in range(seeds):
        curve = [point.best for point in _Planned(landscape, search, SearchSettings(seed=seed, batch=1)).run(max(MARKS))]
        found.append([curve[min(count, len(curve)) - 1] / landscape.best_speedup for count in MARKS])
    return [math.exp(statistics.fmean(math.log(one) for one in column)) for column in zip(*found, strict=True)]


class _Planned(Simulation):
    """A simulation whose planner takes the model's choices first, in their order, as the built-in one does."""

    def _score(self, parent: str, step: Step) -> float:
        number = chosen_number(step.action)
        return TOP_SCORE + CHOICE_POINTS - number if number else super()._score(parent, step)


def with_choices(operator: Operator, landscape: Landscape, sheet: HardwareSheet) -> Landscape:
    """Add the model's choices among the recorded schedules as steps from everywhere."""
    named, _ = places_of(operator, landscape)
    rank(operator, list(named.values()), sheet, fine=False)
    chosen = choices_of(list(named.values()))
    ends = [next(name for name, one in named.items() if one.schedule == choice.schedule) for choice in chosen]
    starts = (ROOT, *(place.id for place in landscape.places if place.id != ROOT))
    steps = [
        Step(start=start, action=choice_action(number), end=end) for start in starts for number, end in enumerate(ends, 1) if start != end
    ]
    fields = landscape.model_dump(exclude={"steps"})
    return Landscape(**fields, steps=(*landscape.steps, *steps))


def choices_of(found: list[Measured], most: int = MOST) -> tuple[Choice, ...]:
    """Choose among schedules as `tools.cost.choice` does among all within reach; a structure's first stands for its start."""
    pool: list[Choice] = []
    structures: dict[tuple[object, ...], list[Measured]] = {}
    for one in found:
        structures.setdefault(tuple(region.nodes for region in one.schedule.regions), []).append(one)
    for each in structures.values():
        settings = sorted((Setting(one.coarse_us, _flat(one)) for one in each), key=lambda setting: setting.us)
        by_text = {str(sorted(_flat(one).items())): one for one in each}
        before = 0.0
        for setting in spread(settings, _flat(each[0]), most):
            one = by_text[str(sorted(setting.parameters.items()))]
            before = max(before, setting.us)
            pool.append(Choice(one.schedule, setting.us, (), (("forward", words_of(setting.parameters)),), before))
    return in_order(pool, most)


def _flat(one: Measured) -> Parameters:
    return {f"{region.id}.{name}": value for region in one.schedule.regions for name, value in region.parameters.items()}


if __name__ == "__main__":
    main()
