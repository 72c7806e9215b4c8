"""Arms side by side, worked out again by hand on synthetic rows that were measured nowhere."""

from __future__ import annotations

import math

import pytest

from kernelwright.bench.comparison import Comparison, compare
from kernelwright.bench.row import ResultRow
from tests.kernelwright.bench.rows import FIRST, kernel, row

SECOND = "bandit/off/builtin"


def _compared(*rows: ResultRow) -> Comparison:
    found = compare(rows, [FIRST, SECOND], budget=4)
    assert found is not None
    return found


def _rows(first: list[float], second: list[float]) -> tuple[ResultRow, ...]:
    return kernel("level1/1_a", 10.0, first), kernel("level1/1_a", 10.0, second, arm=SECOND)


def test_the_curve_is_the_best_so_far_at_each_evaluation_of_the_budget() -> None:
    """A search that ended after two evaluations keeps its best to the end of the budget."""
    first, second = _compared(*_rows([1.0, 4.0], [2.0, 2.0, 2.0, 4.0])).arms
    assert first.curve == pytest.approx((1.0, 4.0, 4.0, 4.0))
    assert second.curve == pytest.approx((2.0, 2.0, 2.0, 4.0))


def test_the_area_is_the_geometric_mean_of_the_curve() -> None:
    """Three of four evaluations at 4: 4^(3/4)."""
    first, second = _compared(*_rows([1.0, 4.0], [2.0, 2.0, 2.0, 4.0])).arms
    assert first.area == pytest.approx(4 ** (3 / 4))
    assert second.area == pytest.approx((2 * 2 * 2 * 4) ** (1 / 4))


def test_most_of_the_best_known_gain_is_counted_in_evaluations_and_gpu_seconds() -> None:
    """90 % of ln 4 is reached by 4 alone: after two evaluations, and not at all within the budget by the other arm."""
    first, second = _compared(*_rows([1.0, 4.0], [2.0, 2.0, 2.0])).arms
    assert (first.reached, first.evaluations_to_most, first.gpu_s_to_most) == (1.0, 2.0, 4.0)
    assert (second.reached, second.evaluations_to_most, second.gpu_s_to_most) == (0.0, 4.0, 6.0)


def test_harm_is_reported() -> None:
    """An arm that ends at half the first arm's gain is worse on that problem, which is named with its ratio."""
    _, second = _compared(*_rows([4.0], [2.0])).arms
    assert (second.worse, second.better) == (1, 0)
    assert second.worst == (("level1/1_a", pytest.approx(0.5)),)


def test_only_problems_that_every_arm_has_done_are_compared() -> None:
    """A problem that one arm lacks is left out, and counted as left out."""
    found = _compared(*_rows([4.0], [2.0]), kernel("level1/2_b", 10.0))
    assert (found.problems, found.left_out) == (1, 1)


def test_a_problem_nobody_gains_on_says_nothing_about_speed() -> None:
    """Reaching 90 % of nothing would be reached at once by everyone."""
    rows = (row("level1/2_b"), row("level1/2_b", arm=SECOND))
    found = _compared(*_rows([4.0], [4.0]), *rows)
    assert (found.problems, found.gaining) == (2, 1)
    assert found.arms[0].final == pytest.approx(2.0)


def test_intervals_come_from_the_seeds() -> None:
    """Two seeds that differ give an interval from one to the other; equal seeds one without width."""
    rows = [kernel("level1/1_a", 10.0, [value], arm=arm, seed=seed) for arm in (FIRST, SECOND) for seed, value in enumerate((2.0, 8.0))]
    first, _ = _compared(*rows).arms
    assert first.final == pytest.approx(4.0)
    assert first.final_interval == pytest.approx((2.0, 8.0))
    assert len(first.band) == 4


def test_families_are_apart() -> None:
    """The final gain by heaviest family."""
    other = [kernel("level1/2_b", 10.0, [9.0], families=("scan",), arm=arm) for arm in (FIRST, SECOND)]
    found = _compared(*_rows([4.0], [4.0]), *other)
    assert found.family_counts == {"softmax": 1, "scan": 1}
    assert found.arms[0].families == {"softmax": pytest.approx(4.0), "scan": pytest.approx(9.0)}
    assert math.isclose(found.arms[0].final, 6.0)
