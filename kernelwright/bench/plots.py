"""The plots of a report: one function a plot, from the report's figures to SVG."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kernelwright.bench.comparison import Comparison
from kernelwright.bench.report import ArmReport, ProblemLine, Section
from kernelwright.bench.row import Status
from kernelwright.bench.svg import COLOURS, Chart, Scale

KEPT = "#b9bec5"
"""Colour of problems whose reference is kept."""


class Plot(NamedTuple):
    """A plot with its file's name and what it shows."""

    name: str
    caption: str
    svg: str


def plots_of(section: Section) -> list[Plot]:
    """Draw what the section has figures for; the plots of single problems show its first arm."""
    arm = section.arms[0]
    word = "" if section.basis == "measured" else " (estimated)"
    against = "better" if "better" in section.against else section.against[0]
    plots = [_by_problem(arm, against, word), _distribution(arm, against, word), _fast(arm, section.against, word)]
    if any(math.isfinite(line.of_roofline) for line in arm.problems):
        plots.append(_roofline(arm, word))
    if any(one.curve for one in section.arms):
        plots.append(_shares(section.arms, word))
    if section.comparison is not None:
        plots.append(_arms(section.comparison, word))
    return plots


def _by_problem(arm: ArmReport, against: str, word: str) -> Plot:
    lines = sorted(arm.problems, key=lambda line: -_speedup(line, against))
    values = [_speedup(line, against) for line in lines]
    y = Scale(min(0.8, *values), max(2.0, *values) * 1.05, "log")
    chart = Chart(f"Speed-up per problem against {_named(against)}{word}", Scale(0, len(lines)), y, "problems, fastest first", "")
    chart.y_axis("x")
    chart.bars(
        [(_speedup(one, against), _colour(one), f"{one.problem}: {_speedup(one, against):.2f}x, {one.status}") for one in lines], 1.0
    )
    chart.rule(1.0, "")
    for label, colour in _legend(lines):
        chart.key(label, colour)
    caption = "Each bar a problem; problems without a win stand at 1.0, where their user keeps the reference."
    return Plot("speedups", caption, chart.svg())


def _distribution(arm: ArmReport, against: str, word: str) -> Plot:
    """Histogram in steps of a quarter of a doubling; problems without a win have a bar of their own."""
    won = [_speedup(line, against) for line in arm.problems if line.status == Status.KERNEL]
    kept = len(arm.problems) - len(won)
    bins = Counter(math.floor(4 * math.log2(value)) for value in won)
    last = max([*bins, 3])
    counts = [bins.get(place, 0) for place in range(last + 1)]
    y = Scale(0, max([*counts, kept, 1]) * 1.08)
    chart = Chart(f"Distribution of speed-ups against {_named(against)}{word}", Scale(0, last + 2), y, "speed-up", "problems")
    chart.y_axis()
    edges = [(0.5, "none")] + [(place + 1, f"{2 ** (place / 4):.3g}x") for place in range(0, last + 2, max(2, (last + 2) // 8))]
    chart.x_axis(edges)
    bars = [(float(kept), KEPT, f"{kept} without a win")]
    bars += [(float(n), COLOURS[0], f"{n} from {2 ** (place / 4):.2f}x to {2 ** ((place + 1) / 4):.2f}x") for place, n in enumerate(counts)]
    chart.bars(bars, 0)
    return Plot("distribution", "Delivered kernels by their speed-up, in steps of a quarter of a doubling; grey: no win.", chart.svg())


def _fast(arm: ArmReport, against: Sequence[str], word: str) -> Plot:
    found = {name: [line.speedups[name] for line in arm.problems if line.status == Status.KERNEL] for name in against}
    top = max([2.0, *(value for values in found.values() for value in values if math.isfinite(value))]) * 1.1
    chart = Chart(f"fast_p{word}", Scale(1.0, top, "log"), Scale(0, 100), "p", "problems")
    chart.x_axis()
    chart.y_axis(" %")
    for place, (name, values) in enumerate(found.items()):
        grid = [top ** (step / 200) for step in range(201)]
        whole = len(arm.problems) - sum(math.isnan(value) for value in values)
        points = [(p, 100 * sum(value > p for value in values) / whole if whole else 0.0) for p in grid]
        chart.line(points, COLOURS[place % len(COLOURS)], f"against {name}")
        chart.key(f"against {_named(name)}", COLOURS[place % len(COLOURS)])
    return Plot("fast_p", "Share of all problems whose delivered kernel is right and more than p times as fast.", chart.svg())


def _roofline(arm: ArmReport, word: str) -> Plot:
    lines = [line for line in arm.problems if math.isfinite(line.of_roofline)]
    lines.sort(key=lambda line: -line.of_roofline)
    before = [(place + 0.5, _before(line), f"{line.problem}: baseline {_before(line):.2f}") for place, line in enumerate(lines)]
    low = min(0.1, *(line.of_roofline for line in lines), *(share for _, share, _ in before if math.isfinite(share)))
    y = Scale(low * 0.9, max(1.1, *(line.of_roofline for line in lines)) * 1.05, "log")
    chart = Chart(f"Distance to the roofline{word}", Scale(0, len(lines)), y, "problems, nearest first", "floor / time")
    chart.y_axis()
    chart.rule(1.0, "roofline floor")
    chart.bars([(line.of_roofline, _colour(line), f"{line.problem}: {line.of_roofline:.2f} of the roofline") for line in lines], y.low)
    chart.dots([point for point in before if math.isfinite(point[1])], COLOURS[4])
    for label, colour in (*_legend(lines), ("better baseline", COLOURS[4])):
        chart.key(label, colour)
    caption = (
        "Roofline floor over time: bars, what the user ends with; dots, the better baseline. The floor is computed from datasheet peaks."
    )
    return Plot("roofline", caption, chart.svg())


def _shares(arms: Sequence[ArmReport], word: str) -> Plot:
    longest = max(len(arm.curve) for arm in arms)
    chart = Chart(f"Share of the gain reached{word}", Scale(0, max(1, longest)), Scale(0, 100), "evaluations", "gain")
    chart.x_axis()
    chart.y_axis(" %")
    for place, arm in enumerate(arm for arm in arms if arm.curve):
        colour = COLOURS[place % len(COLOURS)]
        chart.line([(0, 0.0), *((n, 100 * share) for n, share in enumerate(arm.curve, 1))], colour, arm.arm)
        chart.key(arm.arm, colour)
    return Plot("shares", "Share of an arm's own final gain, in logarithms and over all problems, after so many evaluations.", chart.svg())


def _arms(comparison: Comparison, word: str) -> Plot:
    """Gain against evaluations, with bands over seeds."""
    tops = [value for arm in comparison.arms for value in (*arm.curve, *(high for _, high in arm.band))]
    y = Scale(1.0, max(1.05, *tops) * 1.02, "log")
    chart = Chart(f"Gain against evaluations{word}", Scale(0, comparison.budget), y, "evaluations", "geomean")
    chart.x_axis()
    chart.y_axis("x")
    for place, arm in enumerate(comparison.arms):
        colour = COLOURS[place % len(COLOURS)]
        if arm.band:
            chart.band([(n, low, high) for n, (low, high) in enumerate(arm.band, 1)], colour)
        chart.line([(0, 1.0), *enumerate(arm.curve, 1)], colour, arm.arm)
        chart.key(arm.arm, colour)
    spread = "bands: 95 % bootstrap intervals over seeds" if comparison.seeds > 1 else "one seed, so no interval is known"
    return Plot("arms", f"Best speed-up so far against the better baseline, over {comparison.problems} problems; {spread}.", chart.svg())


def _speedup(line: ProblemLine, against: str) -> float:
    value = line.speedups[against]
    return value if math.isfinite(value) and value > 0 else 1.0


def _before(line: ProblemLine) -> float:
    best = min(line.baselines_us.values(), default=0.0)
    return line.floor_us / best if best > 0 and line.floor_us > 0 else math.nan


def _colour(line: ProblemLine) -> str:
    if line.status != Status.KERNEL:
        return KEPT
    return COLOURS[1] if line.level and not line.development else COLOURS[0]


def _legend(lines: Sequence[ProblemLine]) -> list[tuple[str, str]]:
    names = {COLOURS[0]: "development" if any(line.level for line in lines) else "kernel", COLOURS[1]: "held out", KEPT: "no win"}
    used = {_colour(line) for line in lines}
    return [(name, colour) for colour, name in names.items() if colour in used]


def _named(against: str) -> str:
    return "the better baseline" if against == "better" else against
