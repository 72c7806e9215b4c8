"""The plots of the pages, as SVG: gain over evaluations, times beside baselines and floor, and every single time of a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.bench.svg import COLOURS, Chart, Scale

Facts = dict[str, Any]
RIGHT, FAILED, BEST = COLOURS[0], COLOURS[4], COLOURS[2]


def gain_chart(candidates: Sequence[Facts]) -> str:
    """Draw each candidate's speed-up over the best baseline in the order they came, and the best so far; empty without any."""
    timed = [(line["number"], line["speedup"], line) for line in candidates if line["speedup"]]
    if not timed:
        return ""
    highest = max(gain for _, gain, _ in timed)
    x, y = Scale(0, max(len(candidates), 2)), Scale(min(0.9, *(gain for _, gain, _ in timed)), max(1.2, highest) * 1.1, "log")
    estimated = all(line["tier"] == "estimated" for _, _, line in timed)
    chart = Chart(f"Gain over the best baseline{' (estimated)' if estimated else ''}", x, y, "candidates, in order", "times as fast")
    chart.x_axis()
    chart.y_axis("x")
    chart.rule(1.0, "the best baseline")
    best, steps = 0.0, []
    for number, gain, line in timed:
        if gain > best and line["verdict"] == "PASS":
            steps += [(number, best)] * bool(best) + [(number, gain)]
            best = gain
    steps.append((len(candidates), best))
    chart.line(steps, BEST, "the best so far")
    chart.dots([(number, gain, f"{line['what']}: {gain:.2f}x ({line['tier']})") for number, gain, line in timed], RIGHT)
    chart.key("a candidate", RIGHT)
    chart.key("the best so far", BEST)
    return chart.svg()


def times_chart(facts: Facts) -> str:
    """Draw the times of baselines, of the best candidate and of the roofline's floor as bars; empty where nothing has a time."""
    bars = _baseline_bars(facts["baselines"] or {})
    best = max((line for line in facts["candidates"] if line["speedup"]), key=lambda line: line["speedup"], default=None)
    if best:
        bars.append((best["time_us"], BEST, f"best candidate ({best['tier']})"))
    floor = _figure(facts["reference_profile"], "floor_us")
    if floor:
        bars.append((floor, COLOURS[5], "roofline's floor (model)"))
    if len(bars) < 2:
        return ""
    chart = Chart("Microseconds a call", Scale(0, len(bars)), Scale(0, max(time for time, _, _ in bars) * 1.1), "", "µs")
    chart.y_axis()
    chart.bars([(time, colour, f"{label}: {time:,.1f} µs") for time, colour, label in bars], 0.0)
    chart.x_axis([(place + 0.5, f"{label} {time:,.1f}") for place, (time, _, label) in enumerate(bars)])
    return chart.svg()


def raw_chart(timing: Facts | None) -> str:
    """Draw every time of a session in the order it was measured; empty where none were kept."""
    raw = (timing or {}).get("raw")
    if not raw:
        return ""
    rows = {"candidate": raw["candidate"], **raw["baselines"]}
    times = [time for row in rows.values() for time in row]
    x, y = Scale(0, max(len(row) for row in rows.values())), Scale(min(times) * 0.95, max(times) * 1.05, "log")
    chart = Chart("Every time of the session", x, y, "calls, in order", "µs")
    chart.x_axis()
    chart.y_axis()
    for (name, row), colour in zip(rows.items(), COLOURS, strict=False):
        chart.dots([(place, time, f"{name}: {time:.2f} µs") for place, time in enumerate(row)], colour)
        chart.key(name, colour)
    return chart.svg()


def _baseline_bars(baselines: Facts) -> list[tuple[float, str, str]]:
    measured = [(one["median_us"], RIGHT, name) for name, one in baselines.get("samples", {}).items()]
    estimate = baselines.get("estimate")
    return measured or ([(estimate["eager_us"], RIGHT, "eager (estimated)")] if estimate else [])


def _figure(profile: Facts | None, name: str) -> float:
    figures = (profile or {}).get("figures", ())
    return next((float(one["value"]) for one in figures if one["name"] == name and one["value"]), 0.0)
