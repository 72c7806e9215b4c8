"""What a candidate's page shows of its profile: the roofline chart, the reasons of stalls, and the machine code of its kernels."""

from __future__ import annotations

import math
from typing import Any

from kernelwright.bench.svg import COLOURS, INK, Chart, Scale
from kernelwright.ui.charts import SIZE, bars, figure
from tools.hardware import load_sheet
from tools.profiling.bottleneck import STALLS
from tools.records import HardwareSheet

Facts = dict[str, Any]
STALL = "stall_"
RATES = (("fp32_tflops", "fp32"), ("tf32_tflops", "TF32 tensor cores"), ("fp16_tflops", "fp16 tensor cores"))
"""Ceilings of the roofline, from the device's sheet."""


def roofline_chart(profiles: dict[str, Facts | None]) -> str:
    """Draw where profiles lie below their device's roofs, by name; empty where none has its operations and time."""
    points = [(name, *at) for name, profile in profiles.items() if profile and (at := _point(profile))]
    if not points:
        return ""
    sheet = load_sheet(next(profile["target"] for profile in profiles.values() if profile))
    roofs = [(label, rate) for field, label in RATES if (rate := getattr(sheet, field))]
    highest, xs = max(rate for _, rate in roofs), [x for _, x, _ in points]
    low_x, high_x = min(0.05, min(xs) / 4), 4 * max(1e3 * highest / sheet.memory_gbps, *xs)
    low_y = min(y for _, _, y in points) / 4
    x, y = Scale(low_x, high_x, "log"), Scale(low_y, 2 * highest, "log")
    chart = Chart(f"Roofline of {sheet.title}", x, y, "operations a byte", "TFLOP/s", SIZE)
    chart.x_axis([(tick, f"{tick:g}") for tick in _decades(x)])
    chart.y_axis(ticks=_decades(y))
    for (label, rate), colour in zip(roofs, COLOURS[5:], strict=False):
        chart.line(_roof(sheet, rate, low_x, high_x, low_y), colour, f"{label}: {rate:,.0f} TFLOP/s at most, by the datasheet")
        chart.key(label.removesuffix(" tensor cores"), colour)
    for (name, intensity, reached), colour in zip(points, (INK, COLOURS[0], COLOURS[2]), strict=False):
        chart.dots([(intensity, reached, f"{name}: {reached:,.3g} TFLOP/s at {intensity:.2g} operations a byte")], colour)
        chart.key(name, colour)
    return chart.svg()


def stall_bars(profile: Facts | None) -> list[Facts]:
    """Why warps wait, the longest first, in warps for each instruction that is issued; none without hardware counters."""
    found = [(one["name"].removeprefix(STALL), one["value"]) for one in (profile or {}).get("figures", ()) if one["name"].startswith(STALL)]
    rows = sorted(found, key=lambda one: -one[1])
    return bars([(STALLS.get(name, name), value, f"{value:.2f}", "best" if place == 0 else "") for place, (name, value) in enumerate(rows)])


def code_rows(evaluation: Facts) -> list[Facts]:
    """Each kernel's machine code: its instructions by class, the most frequent first, and what it holds of the device."""
    rows = []
    for kernel in evaluation["kernels"]:
        counts = {name: count for name, count in kernel["instructions"].items() if not name.endswith("_max")}
        mix = sorted(((name, count) for name, count in counts.items() if count), key=lambda one: -one[1])
        widest = {name: kernel["instructions"].get(f"{name}_bytes_max", 0) for name in ("load", "store")}
        rows.append({**kernel, "size": sum(counts.values()), "mix": mix, "widest": widest})
    return rows


def _decades(scale: Scale) -> list[float]:
    return [10.0**power for power in range(math.ceil(math.log10(scale.low)), math.floor(math.log10(scale.high)) + 1)]


def _point(profile: Facts) -> tuple[float, float] | None:
    """Operations a byte, and TFLOP/s."""
    intensity, moved, time_us = (figure(profile, name) for name in ("arithmetic_intensity", "moved_bytes", "time_us"))
    return (intensity, intensity * moved / time_us / 1e6) if intensity and moved and time_us else None


def _roof(sheet: HardwareSheet, rate: float, low_x: float, high_x: float, low_y: float) -> list[tuple[float, float]]:
    """Up along the memory's rate, then along the units' rate."""
    slope = sheet.memory_gbps / 1e3
    start = max(low_x, low_y / slope)
    return [(start, start * slope), (rate / slope, rate), (high_x, rate)]
