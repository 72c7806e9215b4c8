"""Spearman's rank correlation, with average ranks for ties."""

from __future__ import annotations

import math
from collections.abc import Sequence


def spearman(one: Sequence[float], two: Sequence[float]) -> float:
    """Correlate the ranks of two equally long series; NaN where one of them has a single value."""
    first, second = _ranks(one), _ranks(two)
    mean = (len(first) - 1) / 2
    product = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = math.sqrt(sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second))
    return product / spread if spread else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda place: values[place])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = (start + end) / 2
        start = end + 1
    return ranks
