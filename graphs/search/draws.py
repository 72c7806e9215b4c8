"""Drawing at random, the same way after every resume: each draw's generator is made from what it is for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def generator(seed: int, *what: object) -> Random:
    """Make the generator of one purpose; equal purposes draw equally."""
    return Random("/".join(map(str, (seed, *what))))  # noqa: S311 - repeatable draws are wanted, not secret ones


def weighted(rng: Random, items: Sequence[T], weights: Sequence[float]) -> T:
    """Draw one of `items` by `weights`; where all weights are zero, any."""
    total = sum(weights)
    if total <= 0:
        return items[rng.randrange(len(items))]
    return rng.choices(items, weights=weights)[0]


def softmax(scores: Sequence[float], temperature: float) -> list[float]:
    """Turn scores into weights that sum to 1; a small temperature prefers the best."""
    top = max(scores)
    raised = [math.exp((score - top) / max(temperature, 1e-6)) for score in scores]
    total = sum(raised)
    return [value / total for value in raised]
