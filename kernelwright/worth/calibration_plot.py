"""Predicted against measured gains as a picture and as a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelwright.bench.statistics import interval
from kernelwright.bench.svg import COLOURS, INK, Chart, Scale
from knowledge.learning.calibration import Calibration, Comparison, Point, Stretch, points_of
from knowledge.learning.replay import Experience

LEAST, MOST = 0.5, 4.0
"""The axes show at least this range of gains."""


def draw(seen: Sequence[Experience], compared: Comparison | None) -> str:
    """Draw a dot a prediction, those before and after the first pass over the outcomes in their own colours; on the line they agree."""
    estimated = compared is not None and compared.basis == "estimated"
    points = [point for point in points_of(seen) if point.estimated is estimated]
    values = [value for point in points for value in (point.predicted, point.gain)]
    scale = Scale(min([LEAST, *values]), max([MOST, *values]), "log")
    chart = Chart(f"Predicted and {'estimated' if estimated else 'measured'} gains", scale, scale, "predicted gain", "gain")
    chart.x_axis()
    chart.y_axis("x")
    chart.line([(scale.low, scale.low), (scale.high, scale.high)], INK, "agreement")
    split = compared.split if compared else 0
    for after, label in ((False, "before"), (True, "after")):
        colour = COLOURS[after]
        chart.dots([_dot(point) for point in points if (point.seq >= split) is after], colour)
        chart.key(f"{label} {'lessons were rewritten' if compared and compared.by_update else 'the middle'}", colour)
    return chart.svg()


def draw_trend(stretches: Sequence[Stretch]) -> str:
    """Draw by what factor predictions are off as runs go by, with its 95 % bootstrap interval."""
    told = [one for one in stretches if one.errors]
    bands = [_band(one) for one in told]
    basis = told[0].basis if told else "measured"
    scale = Scale(1.0, max([1.2, *(high for _, high in bands)]))
    runs = Scale(0.0, float(max([1, *(one.last for one in told)])))
    chart = Chart(f"How far predictions are off ({basis} gains)", runs, scale, "runs that memory has learnt from", "factor")
    chart.x_axis()
    chart.y_axis("x")
    middles = [(one.first + one.last) / 2 for one in told]
    chart.band([(x, low, high) for x, (low, high) in zip(middles, bands, strict=True)], COLOURS[0])
    chart.line([(x, one.error) for x, one in zip(middles, told, strict=True)], COLOURS[0], "mean")
    chart.dots([(x, one.error, _stretch(one)) for x, one in zip(middles, told, strict=True)], COLOURS[0])
    return chart.svg()


def trend_in_words(stretches: Sequence[Stretch]) -> str:
    """Say how far predictions were off in the first stretch and in the last; empty where there are no two."""
    told = [one for one in stretches if one.errors]
    return f"over time ({told[0].basis} gains): {_stretch(told[0])}; {_stretch(told[-1])}" if len(told) > 1 else ""


def _stretch(one: Stretch) -> str:
    low, high = _band(one)
    return f"runs {one.first}–{one.last}: {len(one.errors)} predictions off by a factor of {one.error:.2f} ({low:.2f}–{high:.2f})"


def _band(one: Stretch) -> tuple[float, float]:
    found = interval([abs(error) for error in one.errors])
    return (math.exp(found[0]), math.exp(found[1])) if found else (one.error, one.error)


def in_words(compared: Comparison | None) -> str:
    """Say how well predictions agree with what came of them, before and after."""
    if compared is None:
        return "calibration: no prediction has a measured gain beside it yet"
    when = "lessons were first rewritten" if compared.by_update else "the middle prediction"
    sides = f"before {when}: {_side(compared.before)}; after: {_side(compared.after)}"
    return f"calibration ({compared.basis} gains): {sides}"


def _side(one: Calibration | None) -> str:
    if one is None:
        return "none"
    return f"{one.predictions} predictions off by a factor of {one.error:.2f}, {100 * one.close:.0f} % within 1.2x, bias {one.bias:.2f}"


def _dot(point: Point) -> tuple[float, float, str]:
    return point.predicted, point.gain, f"{point.run}: predicted {point.predicted:.2f}x, got {point.gain:.2f}x"
