"""Calibration: how well the gains that plans predicted agree with the gains that came of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from knowledge.learning.replay import Experience
from tools.records import Record

CLOSE = math.log(1.2)
"""A prediction within a factor of 1.2 of the gain counts as close, as in KernelBlaster's reward."""


class Point(Record):
    """One prediction and what came of it."""

    seq: int
    run: str
    plan: str
    predicted: float
    gain: float
    estimated: bool
    """Whether `gain` is an estimate; the two are never put into one figure."""


class Calibration(Record):
    """Agreement over some predictions; factors, 1.0 being perfect."""

    predictions: int
    failed: int
    """Further predictions whose candidate did not pass: there is no gain to compare."""
    error: float
    """exp of the mean |ln predicted - ln gain|: by what factor predictions are off."""
    bias: float
    """exp of the mean (ln predicted - ln gain): above 1, too much is promised."""
    close: float
    """Share of the predictions within a factor of 1.2."""


class Comparison(Record):
    """Calibration before and after the lessons were first rewritten."""

    basis: str
    """`measured` or `estimated`."""
    split: int
    """`seq` of the first pass; where there was none, of the middle prediction."""
    by_update: bool
    """Whether the split is a pass over the replay buffer; False: just the first half against the second."""
    before: Calibration | None
    after: Calibration | None


class Stretch(Record):
    """Predictions of some runs that followed one another."""

    first: int
    """Number of the first run, from 1 on."""
    last: int
    errors: tuple[float, ...]
    """ln predicted - ln gain, of every prediction that has a gain of the basis."""
    basis: str
    """`measured` or `estimated`."""

    @property
    def error(self) -> float:
        """By what factor predictions are off: exp of the mean |ln predicted - ln gain|; 1.0 without predictions."""
        return math.exp(statistics.fmean(map(abs, self.errors))) if self.errors else 1.0


def by_runs(seen: Sequence[Experience], runs: int, names: Sequence[str] = ()) -> tuple[Stretch, ...]:
    """Cut the history into stretches of so many runs, in the order in which runs first taught something (or that of `names`)."""
    order = {run: place for place, run in enumerate(names or dict.fromkeys(one.outcome.run for one in seen))}
    points = points_of(seen)
    estimated = not any(not point.estimated for point in points)
    errors: dict[int, list[float]] = {start: [] for start in range(0, len(order), runs)}
    for point in points:
        if point.estimated is estimated:
            errors[order[point.run] // runs * runs].append(math.log(point.predicted / point.gain))
    basis = "estimated" if estimated else "measured"
    return tuple(Stretch(first=n + 1, last=min(n + runs, len(order)), errors=tuple(found), basis=basis) for n, found in errors.items())


def points_of(seen: Sequence[Experience]) -> list[Point]:
    """List every prediction that has a measured gain beside it."""
    return [
        Point(
            seq=one.seq,
            run=one.outcome.run,
            plan=one.outcome.plan,
            predicted=one.outcome.predicted_gain,
            gain=one.gain,
            estimated=one.estimated,
        )
        for one in seen
        if one.outcome.predicted_gain and one.gain
    ]


def calibrate(seen: Sequence[Experience], *, estimated: bool) -> Calibration | None:
    """Work out the agreement of measured, or of estimated gains with what was predicted; None without a prediction."""
    errors = [math.log(p.predicted / p.gain) for p in points_of(seen) if p.estimated is estimated]
    if not errors:
        return None
    failed = sum(bool(one.outcome.predicted_gain) and one.gain is None for one in seen)
    return Calibration(
        predictions=len(errors),
        failed=failed,
        error=math.exp(statistics.fmean(map(abs, errors))),
        bias=math.exp(statistics.fmean(errors)),
        close=sum(abs(e) <= CLOSE for e in errors) / len(errors),
    )


def compare(seen: Sequence[Experience], updates: Sequence[int]) -> Comparison | None:
    """Compare the predictions before the first of `updates` (`seq` of passes) with those after; None without predictions."""
    points = points_of(seen)
    estimated = not any(not p.estimated for p in points)
    kept = [p for p in points if p.estimated is estimated]
    if not kept:
        return None
    split = min(updates) if updates else kept[len(kept) // 2].seq
    return Comparison(
        basis="estimated" if estimated else "measured",
        split=split,
        by_update=bool(updates),
        before=calibrate([one for one in seen if one.seq < split], estimated=estimated),
        after=calibrate([one for one in seen if one.seq >= split], estimated=estimated),
    )
