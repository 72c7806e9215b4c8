"""The best gain so far over a run's evaluations, drawn as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from kernelwright.bench.svg import Scale

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 240, 48, 32, 12


@dataclass(frozen=True)
class Point:
    """One evaluation."""

    number: int
    """From 1, in the order they were made."""
    gain: float | None
    """Times as fast as the best baseline; None where it has no time of the kind that is drawn."""
    words: str


def gain_chart(points: Sequence[Point], title: str) -> Markup:
    """Draw each evaluation as a point, those without a gain on the axis, and the best so far as a line; empty without any gain."""
    gains = [point.gain for point in points if point.gain]
    if not gains:
        return Markup("")
    top = max(1.0, *gains) * 1.1
    parts = [_grid(top), _best(points, top), *(_mark(point, len(points), top) for point in points)]
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>').format(WIDTH, HEIGHT, title, title)
    said = "evaluation 1" if len(points) == 1 else f"evaluations 1 to {len(points)}"
    foot = Markup('<text class="axis" x="{}" y="{}" text-anchor="end">{}</text></svg>').format(WIDTH - 8, HEIGHT - 6, said)
    return Markup("\n").join([head, *parts, foot])


def _x(number: float, count: int) -> float:
    return round(LEFT + (WIDTH - LEFT - 16) * (number - 0.5) / count, 1)


def _y(gain: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * gain / top, 1)


def _grid(top: float) -> Markup:
    line = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/><text class="axis" x="{}" y="{}" text-anchor="end">{}x</text>')
    levels = Scale(0.0, top).ticks()
    drawn = [line.format(LEFT, WIDTH - 8, _y(at, top), _y(at, top), LEFT - 6, _y(at, top) + 4, f"{at:.4g}") for at in levels]
    baseline = Markup('<line class="baseline" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(LEFT, WIDTH - 8, _y(1.0, top), _y(1.0, top))
    return Markup("").join([*drawn, baseline])


def _best(points: Sequence[Point], top: float) -> Markup:
    steps: list[str] = []
    best = 0.0
    for point in points:
        better = max(best, point.gain or 0.0)
        x = _x(point.number, len(points))
        if better > best and not steps:
            steps.append(f"M{x},{_y(better, top)}")
        elif steps:
            steps.append(f"H{x}V{_y(better, top)}")
        best = better
    return Markup('<path class="best" d="{}"/>').format("".join(steps))


def _mark(point: Point, count: int, top: float) -> Markup:
    kind = "right" if point.gain else "wrong"
    shape = Markup('<circle class="{}" cx="{}" cy="{}" r="4"><title>{}</title></circle>')
    return shape.format(kind, _x(point.number, count), _y(point.gain or 0.0, top), escape(f"{point.number}. {point.words}"))
