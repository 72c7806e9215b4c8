"""The plots of the pages, as SVG: gain over candidates, time and money, every single time of a candidate, and where time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kernelwright.bench.svg import COLOURS, Chart, Scale

Facts = dict[str, Any]
RIGHT, FAILED, BEST = COLOURS[0], COLOURS[4], COLOURS[2]
Bar = tuple[str, float | None, str, str]
"""Name, value, the value in words, and a mark for its colour."""
SIZE = (520, 300)
"""Small, so that letters are not much smaller on a phone."""
DOTS = 400
"""Candidates that are drawn as dots; of more every so many-th, and each that was the best so far."""


class Over(NamedTuple):
    """What gain is drawn over."""

    field: str
    title: str
    unit: str


OVERS = (
    Over("number", "candidates", "candidates, in order"),
    Over("seconds", "time", "seconds at work"),
    Over("usd", "money", "US dollars"),
)


def gain_charts(points: Sequence[Facts]) -> list[str]:
    """Draw gains over candidates, over time, and over money where any was spent; none without a time."""
    return [svg for over in OVERS if over.field != "usd" or any(one["usd"] for one in points) if (svg := gain_chart(points, over))]


def gain_chart(points: Sequence[Facts], over: Over = OVERS[0]) -> str:
    """Draw each candidate's speed-up over the best baseline and the best so far; failures lie at the foot; empty without any gain."""
    timed = [one for one in points if one["speedup"]]
    if not timed:
        return ""
    low, high = min(0.9, *(one["speedup"] for one in timed)), max(1.2, *(one["speedup"] for one in timed)) * 1.1
    last = max(one[over.field] for one in points)
    estimated = " (estimated)" if all(one["tier"] == "estimated" for one in timed) else ""
    x, y = Scale(0, max(last, 2 if over.field == "number" else 1e-6)), Scale(low, high, "log")
    chart = Chart(f"Gain over {over.title}{estimated}", x, y, over.unit, "", SIZE)
    chart.x_axis()
    chart.y_axis("x")
    chart.rule(1.0, "the best baseline")
    steps, best = _best_so_far(timed, over.field)
    chart.line([*steps, (last, steps[-1][1])], BEST, "the best so far")
    failed = [(one[over.field], low, f"{one['id'][:6]}: {one['verdict']}") for one in points if one["verdict"] and not one["speedup"]]
    drawn = _thinned(timed, best)
    chart.dots(failed[:: max(1, len(failed) // DOTS)], FAILED)
    chart.dots([(one[over.field], one["speedup"], f"{one['id'][:6]}: {one['speedup']:.2f}x ({one['tier']})") for one in drawn], RIGHT)
    chart.key("right" if len(drawn) == len(timed) else f"right ({len(drawn)} of {len(timed):,})", RIGHT)
    if failed:
        chart.key("failed", FAILED)
    chart.key("the best so far", BEST)
    return chart.svg()


def raw_chart(timing: Facts | None) -> str:
    """Draw every time of a session in the order it was measured; empty where none were kept."""
    raw = (timing or {}).get("raw")
    if not raw:
        return ""
    rows = {"candidate": raw["candidate"], **raw["baselines"]}
    times = [time for row in rows.values() for time in row]
    x, y = Scale(0, max(len(row) for row in rows.values())), Scale(min(times) * 0.95, max(times) * 1.05, "log")
    chart = Chart("Every time of the session", x, y, "calls, in order", "µs", SIZE)
    chart.x_axis()
    chart.y_axis()
    for (name, row), colour in zip(rows.items(), COLOURS, strict=False):
        chart.dots([(place, time, f"{name}: {time:.2f} µs") for place, time in enumerate(row)], colour)
        chart.key(name, colour)
    return chart.svg()


def record_chart(trials: Sequence[Facts]) -> str:
    """Draw the gains of a strategy's trials in their order; empty where none has a gain."""
    timed = [(number, one["gain"], one) for number, one in enumerate(trials, 1) if one["gain"]]
    if not timed:
        return ""
    gains = [gain for _, gain, _ in timed]
    y = Scale(min(0.9, *gains), max(1.2, *gains) * 1.1, "log")
    chart = Chart("Gain of each trial", Scale(0, len(trials) + 1), y, "trials, in order", "", SIZE)
    chart.x_axis([(number, str(number)) for number in range(1, len(trials) + 1, max(1, len(trials) // 8))])
    chart.y_axis("x")
    chart.rule(1.0, "as fast as before")
    failed = [(number, y.low, f"{one['run']}: {one['verdict']}") for number, one in enumerate(trials, 1) if not one["gain"]]
    for label, colour, estimated in (("measured", RIGHT, False), ("estimated", COLOURS[1], True)):
        dots = [
            (n, gain, f"{one['run']}: {gain:.2f}x ({one['tier']})") for n, gain, one in timed if (one["tier"] == "estimated") == estimated
        ]
        if dots:
            chart.dots(dots, colour)
            chart.key(label, colour)
    if failed:
        chart.dots(failed, FAILED)
        chart.key("failed", FAILED)
    return chart.svg()


def bars(rows: Sequence[Bar]) -> list[Facts]:
    """Bars for `macros.bars`: of (name, value, text, mark) each with its share of the largest value, in percent."""
    top = max((value for _, value, _, _ in rows if value), default=1.0)
    return [{"name": name, "share": 100 * (value or 0.0) / top, "text": text, "mark": mark} for name, value, text, mark in rows]


def time_bars(facts: Facts) -> list[Facts]:
    """The times of baselines, of the champion and of the roofline's floor; none where only one thing has a time."""
    rows: list[Bar] = [(name, us, f"{us:,.1f} µs {tier}", "") for name, us, tier in _baselines(facts["baselines"] or {})]
    if facts["time_us"]:
        title = "delivered" if facts["delivered"] not in (None, "root") else "best so far"
        rows.append((title, facts["time_us"], f"{facts['time_us']:,.1f} µs {facts['tier']}", "best"))
    if floor := figure(facts["reference_profile"], "floor_us"):
        rows.append(("roofline's floor", floor, f"{floor:,.1f} µs computed", "floor"))
    return bars(rows) if len(rows) > 1 else []


def figure(profile: Facts | None, name: str) -> float:
    """The value of a profile's figure; 0 where it has none."""
    figures = (profile or {}).get("figures", ())
    return next((float(one["value"]) for one in figures if one["name"] == name and one["value"]), 0.0)


def _best_so_far(timed: Sequence[Facts], field: str) -> tuple[list[tuple[float, float]], set[str]]:
    """The corners of the line, and the candidates that each were the best."""
    best, steps, names = 0.0, list[tuple[float, float]](), set[str]()
    for one in timed:
        if one["speedup"] > best:
            steps += [(one[field], best)] * bool(best) + [(one[field], one["speedup"])]
            best = one["speedup"]
            names.add(one["id"])
    return steps, names


def _thinned(timed: Sequence[Facts], best: set[str]) -> list[Facts]:
    every = -(-len(timed) // DOTS)
    return [one for place, one in enumerate(timed) if place % every == 0 or one["id"] in best]


def _baselines(baselines: Facts) -> list[tuple[str, float, str]]:
    tier = baselines.get("tier") or "measured"
    measured = [(name, one["median_us"], tier) for name, one in baselines.get("samples", {}).items()]
    estimate = baselines.get("estimate")
    return measured or ([("eager", estimate["eager_us"], "estimated")] if estimate else [])
