"""Means, shares and intervals."""

from __future__ import annotations

import math

import pytest

from kernelwright.bench.statistics import fast_share, first_reaching, gain_share, geomean, interval, mean, value_at


def test_the_geometric_mean_of_a_doubling_and_a_halving_is_one() -> None:
    """Geometric means weigh ratios."""
    assert geomean([2.0, 0.5]) == pytest.approx(1.0)
    assert math.isnan(geomean([]))


def test_what_was_not_timed_is_left_out_of_means() -> None:
    """NaN stands for a missing baseline and never spoils a mean."""
    assert geomean([4.0, math.nan, 1.0]) == pytest.approx(2.0)
    assert mean([4.0, math.nan]) == 4.0


def test_fast_p_counts_all_problems_in_its_denominator() -> None:
    """Two of four problems have a kernel more than 1.5 times as fast, whoever has none."""
    assert fast_share([1.5, 2.0, 3.0], 1.5, of=4) == 0.5


def test_a_curve_is_one_before_its_first_evaluation_and_stays_after_its_last() -> None:
    """A search that ended early keeps what it had."""
    assert [value_at([1.0, 2.0, 3.0], n) for n in (0, 1, 2, 3, 99)] == [1.0, 1.0, 2.0, 3.0, 3.0]


def test_the_share_of_the_gain_is_taken_in_logarithms_over_all_curves() -> None:
    """After one evaluation a curve to 4 that stands at 2 has half of its gain; the other, ln 2, has none: 1 of 3 parts."""
    assert gain_share([[2.0, 4.0], [1.0, 2.0]], 1) == pytest.approx(1 / 3)
    assert math.isnan(gain_share([[1.0]], 1))


def test_reaching_counts_evaluations_from_one() -> None:
    """The first evaluation that brings enough counts; None where none does."""
    assert first_reaching([1.0, 1.9, 2.5], 1.9) == 2
    assert first_reaching([1.0], 1.9) is None


def test_an_interval_needs_repetitions_and_holds_their_mean() -> None:
    """One seed has no interval; several give the same one every time."""
    assert interval([1.0]) is None
    found = interval([1.0, 2.0, 3.0])
    assert found == interval([1.0, 2.0, 3.0])
    assert found is not None
    assert 1.0 <= found[0] < 2.0 < found[1] <= 3.0
