"""Trials of a strategy, and what they sum up to."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from tools.records import Record, Tier, Verdict


class Trial(Record):
    """One time a strategy was followed."""

    run: str
    candidate: str
    verdict: Verdict
    gain: float | None
    """Parent time over candidate time; None where there was none (it failed)."""
    tier: str
    """Tier of the times behind `gain`, `estimated` included: never mixed with measured ones."""
    device: str
    """Device timed, or target estimated for."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Of torch, triton and the driver; empty in trials of schema 1."""
    policy: str = ""
    """Name of the precision policy it was judged under; empty in trials of schema 1."""
    error_cost: float | None = None
    """Worst relative error over the reference's own, both against float64; None where nothing was judged."""
    gpu_s: float = 0.0
    """What the evaluation cost."""


class Changes(Record):
    """The measured change of a strategy over its trials; estimated gains only where nothing was measured."""

    tries: int
    passes: int
    basis: str
    """`measured`, `estimated`, or `none`."""
    low: float | None
    """First quartile of the gains; the smallest of fewer than four."""
    median: float | None
    high: float | None
    """Third quartile; the largest of fewer than four."""
    failures: dict[str, int]
    """Verdicts of the tries that did not pass."""
    error_cost: float | None
    """Median over the trials that were judged."""


class Scope(Record):
    """What a strategy's evidence covers."""

    devices: tuple[str, ...]
    versions: dict[str, tuple[str, ...]]
    policies: tuple[str, ...]


def changes_of(trials: Sequence[Trial]) -> Changes:
    """Sum up trials; the gains of measured ones, or of estimated ones where nothing was measured."""
    passed = [t for t in trials if t.verdict is Verdict.PASS and t.gain]
    measured = [t.gain for t in passed if t.tier != Tier.ESTIMATED and t.gain]
    gains = measured or [t.gain for t in passed if t.gain]
    low, median, high = _spread(gains)
    errors = [t.error_cost for t in trials if t.error_cost is not None]
    return Changes(
        tries=len(trials),
        passes=sum(t.verdict is Verdict.PASS for t in trials),
        basis="measured" if measured else "estimated" if gains else "none",
        low=low,
        median=median,
        high=high,
        failures=dict(Counter(t.verdict.value for t in trials if t.verdict is not Verdict.PASS)),
        error_cost=statistics.median(errors) if errors else None,
    )


def _spread(gains: list[float]) -> tuple[float | None, float | None, float | None]:
    if not gains:
        return None, None, None
    if len(gains) < 4:
        return min(gains), statistics.median(gains), max(gains)
    low, middle, high = statistics.quantiles(gains, n=4, method="inclusive")
    return low, middle, high
