"""How operators share the wall time that they are given together."""

import pytest

from kernelwright.models.side_by_side import part_of


@pytest.mark.parametrize(
    ("left_s", "budgets", "part"),
    [(600.0, [4, 2], 400.0), (600.0, [1, 59], 50.0), (20.0, [1, 1], 20.0), (200.0, [2], 200.0), (-3.0, [2], -3.0)],
)
def test_time_goes_by_budgets_but_none_gets_too_little_to_end(left_s: float, budgets: list[int], part: float) -> None:
    """By evaluations, at least what a confirmed kernel takes, and never more than there is."""
    assert part_of(left_s, budgets) == part
