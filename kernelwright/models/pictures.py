"""The plots of the report of a model: time end to end by way of running it, shares of the time, and what each operator brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kernelwright.bench.svg import COLOURS, Chart, Scale
from kernelwright.models.proving import served
from kernelwright.models.records import Outcome
from kernelwright.models.ways import PAIRS
from tools.models.jobs import OURS, WITHOUT
from tools.models.records import Group

MOST = 8
"""Bars of a plot."""
LETTERS = 13
"""Of a name below a bar; the whole one is in the bar's title."""
IN, OUT, NOTHING, REST, ALONE = "in the package", "taken out", "nothing delivered", "not chosen", "left alone"
FATES = dict(zip((IN, OUT, NOTHING, REST, ALONE), (COLOURS[2], COLOURS[1], COLOURS[0], "#b9bec5", COLOURS[4]), strict=True))
"""What became of modules, and its colour."""
WITH, PLAIN = COLOURS[2], "#b9bec5"


class Picture(NamedTuple):
    """A plot and what it shows."""

    caption: str
    svg: str


def pictures_of(outcome: Outcome) -> list[Picture]:
    """Draw what there are figures for."""
    found = [_shares(outcome)] if any(group.paths != ("",) for group in outcome.capture.groups) else []
    if outcome.proof.times:
        found.insert(0, _ways(outcome))
    way = served(outcome.proof, outcome.capture.weights)
    brought = [one for one in outcome.ratios if one.over.startswith(WITHOUT) and one.under == f"{OURS}{way}"]
    if brought:
        gains = [(one.over.removeprefix(WITHOUT).removesuffix(way), one.value, one.low, one.high) for one in brought]
        found.append(_brought(gains, way))
    return found


def _ways(outcome: Outcome) -> Picture:
    """Bars of the time of all workloads, by their weights, in each way that was timed."""
    weights = outcome.capture.weights
    ours = {with_ours for _, with_ours in PAIRS}
    ways = [way for pair in PAIRS for way in pair if way in outcome.proof.times]
    ms = {way: sum(weights[name] * sorted(each)[len(each) // 2] for name, each in outcome.proof.times[way].items()) / 1e3 for way in ways}
    y = Scale(0, max(ms.values()) * 1.1)
    chart = Chart("The whole model, end to end: all workloads by their weights", Scale(0, len(ways)), y, "", "ms")
    chart.y_axis()
    chart.x_axis([(place + 0.5, way) for place, way in enumerate(ways)])
    chart.bars([(ms[way], WITH if way in ours else PLAIN, f"{way}: {ms[way]:,.4g} ms") for way in ways], 0.0)
    chart.key("with the operators", WITH)
    chart.key("without", PLAIN)
    return Picture(f"Medians, measured on {outcome.target} in one process, in turn; less is better.", chart.svg())


def _shares(outcome: Outcome) -> Picture:
    groups = [group for group in outcome.capture.groups if group.paths != ("",)][:MOST]
    fates = [_fate(group, outcome) for group in groups]
    top = max(0.01, *(group.share for group in groups)) * 110
    chart = Chart("Share of the model's time", Scale(0, len(groups)), Scale(0, top), "", "%")
    chart.y_axis("%")
    chart.x_axis(_below([group.name for group in groups]))
    chart.bars(
        [(group.share * 100, FATES[fate], f"{group.name}: {group.share:.1%}, {fate}") for group, fate in zip(groups, fates, strict=True)],
        0.0,
    )
    for fate, colour in FATES.items():
        if fate in fates:
            chart.key(fate, colour)
    return Picture(f"By {outcome.capture.clock}; what is inside of a module counts for it, too.", chart.svg())


def _brought(gains: Sequence[tuple[str, float, float, float]], way: str) -> Picture:
    ends = [end for _, _, low, high in gains for end in (low, high)]
    y = Scale(min(0.99, *ends), max(1.01, *ends))
    chart = Chart("What each operator brings the model, times as fast", Scale(0, len(gains)), y, "", "")
    chart.y_axis("x")
    chart.x_axis(_below([name for name, *_ in gains]))
    chart.bars([(value, WITH, f"{name}: {value:.3f}x [{low:.3f}, {high:.3f}]") for name, value, low, high in gains], 1.0)
    for place, (name, _, low, high) in enumerate(gains):
        chart.line([(place + 0.5, low), (place + 0.5, high)], "#22262b", f"{name}: 95 % interval")
    chart.rule(1.0, "")
    return Picture(f"Eager{way} with all operators over the same without this one, measured; lines are 95 % intervals.", chart.svg())


def _fate(group: Group, outcome: Outcome) -> str:
    one = next((one for one in outcome.operators if one.name == group.name), None)
    if one is not None:
        return IN if one.kept else OUT if one.delivered else NOTHING
    return ALONE if group.reason else REST


def _below(names: Sequence[str]) -> list[tuple[float, str]]:
    return [(place + 0.5, name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…") for place, name in enumerate(names)]
