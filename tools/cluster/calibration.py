"""Whether evaluators of one kind agree: each times the same kernel when it begins and every hour, and who differs is named."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

TOLERANCE = 0.03
"""Deviation from the median of all that is told: medians of one GPU differ by less than a percent from hour to hour."""
EVERY_S = 3600.0
_ENOUGH = 3
"""Figures without which the median says nothing: of two that differ either may be the odd one."""
OF_TWO = "the mean of two evaluators, of which either may be odd"


def deviating(figures: Mapping[str, float]) -> dict[str, float]:
    """By name how far from the median a figure lies, as a share of it, where that is more than the tolerance.

    Of two that differ both are named: nobody knows which one is right.
    """
    if len(figures) < 2:
        return {}
    middle = statistics.median(figures.values())
    found = {name: figure / middle - 1 for name, figure in figures.items()}
    limit = TOLERANCE if len(figures) >= _ENOUGH else TOLERANCE / 2
    return {name: share for name, share in found.items() if abs(share) > limit}


def in_words(name: str, share: float, others: int) -> str:
    """Say it in a sentence."""
    word = "longer" if share > 0 else "less"
    whom = f"the median of {others} evaluators" if others >= _ENOUGH else OF_TWO
    return f"{name}: the calibration kernel takes {abs(share):.1%} {word} than {whom}."


def is_news(note: str, before: str) -> bool:
    """Whether a note is to be said: the first one, and the first that tells which of several is the odd one."""
    return bool(note) and (not before or (OF_TWO in before and OF_TWO not in note))
