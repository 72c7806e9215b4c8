"""Small charts as SVG text: axes with linear or logarithmic scales, lines, bands, bars and dots, each with a title to hover over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 44, 48

COLOURS = ("#1f6fb4", "#d1681c", "#2f8f57", "#8a5bb0", "#b5303c", "#6b6f76", "#b08a12", "#17939f")
"""Told apart with the common colour blindnesses too; a ninth series begins again."""

INK, FAINT, PAPER = "#22262b", "#d9dde2", "#ffffff"


class Scale(NamedTuple):
    """One axis: its ends in data units, and how they are spaced."""

    low: float
    high: float
    kind: Literal["linear", "log"] = "linear"

    def share(self, value: float) -> float:
        """Where `value` lies between the ends, 0 to 1; what lies outside is put at the edge."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.kind == "log":
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low) if high > low else 0.5

    def ticks(self) -> list[float]:
        """Round values for labels, about six."""
        return _powers(self) if self.kind == "log" else _steps(self)


class Chart:
    """One chart under construction; y grows upwards."""

    def __init__(self, title: str, x: Scale, y: Scale, x_label: str, y_label: str, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
        """Draw paper, title and axes."""
        self._x, self._y, self._title = x, y, title
        self._wide, self._tall = size
        self._parts = [
            f'<rect width="{self._wide}" height="{self._tall}" fill="{PAPER}"/>',
            _text(LEFT, 18, title, size=14, weight="600"),
            _text((LEFT + self._wide - RIGHT) / 2, self._tall - 10, x_label, anchor="middle"),
            _text(LEFT - 46, TOP - 8, y_label),
        ]
        self._keys = 0

    def x_axis(self, labels: Sequence[tuple[float, str]] = ()) -> None:
        """Label the horizontal axis, with its own ticks or these."""
        for value, label in labels or [(tick, _label(tick)) for tick in self._x.ticks()]:
            at = self._at_x(value)
            self._parts.append(
                f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{self._tall - BOTTOM}" stroke="{FAINT}" stroke-width="0.6"/>'
            )
            self._parts.append(_text(at, self._tall - BOTTOM + 15, label, anchor="middle"))

    def y_axis(self, unit: str = "", ticks: Sequence[float] = ()) -> None:
        """Label the vertical axis, with its own ticks or these."""
        for tick in ticks or self._y.ticks():
            at = self._at_y(tick)
            self._parts.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{self._wide - RIGHT}" y2="{at:.1f}" stroke="{FAINT}"/>')
            self._parts.append(_text(LEFT - 6, at + 4, _label(tick) + unit, anchor="end"))

    def rule(self, y: float, label: str) -> None:
        """Draw a dashed line across, where something begins to count."""
        at = self._at_y(y)
        line = f'<line x1="{LEFT}" y1="{at:.1f}" x2="{self._wide - RIGHT}" y2="{at:.1f}" stroke="{INK}" stroke-dasharray="4 3"/>'
        self._parts += [line, _text(self._wide - RIGHT, at - 4, label, anchor="end")]

    def bars(self, values: Sequence[tuple[float, str, str]], base: float) -> None:
        """Draw one bar a value from `base`: (value, colour, title); they share the width evenly."""
        wide = (self._wide - LEFT - RIGHT) / max(1, len(values))
        floor = self._at_y(base)
        for place, (value, colour, title) in enumerate(values):
            if value == base:
                continue
            at = self._at_y(value)
            top, tall = min(at, floor), max(1.0, abs(at - floor))
            left = LEFT + place * wide
            box = f'x="{left + 0.08 * wide:.2f}" y="{top:.1f}" width="{0.84 * wide:.2f}" height="{tall:.1f}" fill="{colour}"'
            self._parts.append(f"<rect {box}><title>{escape(title)}</title></rect>")

    def band(self, points: Sequence[tuple[float, float, float]], colour: str) -> None:
        """Shade between a lower and an upper line: (x, low, high)."""
        there = [f"{self._at_x(x):.1f},{self._at_y(high):.1f}" for x, _, high in points]
        back = [f"{self._at_x(x):.1f},{self._at_y(low):.1f}" for x, low, _ in reversed(points)]
        self._parts.append(f'<polygon points="{" ".join([*there, *back])}" fill="{colour}" fill-opacity="0.18"/>')

    def line(self, points: Sequence[tuple[float, float]], colour: str, title: str) -> None:
        """Draw a line through points."""
        through = " ".join(f"{self._at_x(x):.1f},{self._at_y(y):.1f}" for x, y in points)
        self._parts.append(
            f'<polyline points="{through}" fill="none" stroke="{colour}" stroke-width="2"><title>{escape(title)}</title></polyline>'
        )

    def dots(self, points: Sequence[tuple[float, float, str]], colour: str) -> None:
        """Draw a dot a point: (x, y, title)."""
        for x, y, title in points:
            at = f'cx="{self._at_x(x):.1f}" cy="{self._at_y(y):.1f}" r="3.2"'
            self._parts.append(f'<circle {at} fill="{colour}" fill-opacity="0.8"><title>{escape(title)}</title></circle>')

    def key(self, label: str, colour: str) -> None:
        """Add an entry to the legend, from left to right below the title."""
        left = LEFT + 90 + self._keys
        self._parts.append(f'<rect x="{left}" y="{TOP - 17}" width="10" height="10" fill="{colour}"/>')
        self._parts.append(_text(left + 14, TOP - 8, label))
        self._keys += 24 + round(6.6 * len(label))

    def svg(self) -> str:
        """The whole picture, fit to stand in a page or a file of its own."""
        wide, tall = self._wide, self._tall
        frame = f'viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" font-family="system-ui, sans-serif" font-size="11"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(self._title)}" {frame}>'
        return "\n".join([head, *self._parts, "</svg>\n"])

    def _at_x(self, value: float) -> float:
        return LEFT + self._x.share(value) * (self._wide - LEFT - RIGHT)

    def _at_y(self, value: float) -> float:
        return self._tall - BOTTOM - self._y.share(value) * (self._tall - TOP - BOTTOM)


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11, weight: str = "400") -> str:
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{INK}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _powers(scale: Scale) -> list[float]:
    """Powers of two, thinned out, or one, two and five by decade where the range is narrow."""
    low, high = math.ceil(math.log2(scale.low) - 1e-9), math.floor(math.log2(scale.high) + 1e-9)
    if high - low < 3:
        return _steps(scale)
    stride = max(1, round((high - low) / 6))
    return [2.0**power for power in range(low, high + 1) if power % stride == 0]


def _steps(scale: Scale) -> list[float]:
    rough = (scale.high - scale.low) / 5 or 1.0
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    first = math.ceil(scale.low / step - 1e-9)
    return [step * place for place in range(first, math.floor(scale.high / step + 1e-9) + 1)]


def _label(value: float) -> str:
    return f"{value:.4g}"
