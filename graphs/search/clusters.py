"""Clusters of kernels by how they run: k-means on five features, deterministic, for a few hundred points."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphs.search.archive import Portrait

Point = tuple[float, ...]


def features(portrait: Portrait) -> Point:
    """Time, registers, shared memory, threads a program, occupancy; on logarithmic scales where they span magnitudes."""
    return (
        math.log2(max(portrait.time_us, 1e-3)),
        portrait.registers / 64,
        math.log2(1 + portrait.shared_bytes / 1024),
        math.log2(1 + portrait.threads),
        portrait.occupancy,
    )


def cluster(points: Sequence[Point], count: int, rounds: int = 20) -> list[int]:
    """Return the cluster of each point; starting from the first point, each further centre is the point farthest from all before."""
    scaled = _scaled(points)
    centres = [scaled[0]]
    while len(centres) < min(count, len(scaled)):
        centres.append(max(scaled, key=lambda p: min(_distance(p, c) for c in centres)))
    labels: list[int] = []
    for _ in range(rounds):
        new = [min(range(len(centres)), key=lambda i: (_distance(p, centres[i]), i)) for p in scaled]
        if new == labels:
            break
        labels = new
        centres = [_mean([p for p, own in zip(scaled, labels, strict=True) if own == i]) or centres[i] for i in range(len(centres))]
    return labels


def _scaled(points: Sequence[Point]) -> list[Point]:
    """Each feature between 0 and 1, so that none rules."""
    lows = [min(column) for column in zip(*points, strict=True)]
    spans = [(max(column) - low) or 1.0 for column, low in zip(zip(*points, strict=True), lows, strict=True)]
    return [tuple((v - low) / span for v, low, span in zip(p, lows, spans, strict=True)) for p in points]


def _distance(one: Point, other: Point) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _mean(points: Sequence[Point]) -> Point | None:
    return tuple(sum(column) / len(points) for column in zip(*points, strict=True)) if points else None
