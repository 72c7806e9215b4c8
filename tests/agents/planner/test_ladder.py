"""Steps along a ladder of options."""

from __future__ import annotations

import pytest

from agents.planner.ladder import ladder_place
from agents.planner.scores import SCORES, VALUES, value_points
from tools.actions import GUIDE
from tools.records import Bottleneck


@pytest.mark.parametrize(
    ("rungs", "direction", "best"),
    [
        ((1, 2, 8, 16), 1, 8),
        ((1, 2, 8, 16), -1, 2),
        ((16, 32, 64, 256, 512), 1, 256),
        ((1, 2, 4, 8), 1, 4),
        ((1, 2, 4, 8), -1, 2),
    ],
)
def test_next_rung_is_best(rungs: tuple[float, ...], direction: int, best: float) -> None:
    """The rung beside the parent's own, which shows as a gap, is preferred in the direction asked for; without a gap a moderate one."""
    assert max(rungs, key=lambda rung: ladder_place(rung, rungs, direction)) == best


def test_single_rung_has_no_place() -> None:
    """One option alone is neither low nor high."""
    assert ladder_place(4.0, [4.0], 1) == 0.0


def test_values_are_those_of_the_guide() -> None:
    """Every parameter value that the planner weighs is one that the guide explains."""
    known = {p.name: p.values for meaning in GUIDE.values() for p in meaning.parameters}
    assert all(value in known[name] for name, value in VALUES)


def test_going_back_to_the_library_comes_last() -> None:
    """Against no bottleneck is leaving a region to the library the first thing to do."""
    for bottleneck, row in SCORES.items():
        assert max(row.values()) > row["algorithm"] + value_points("implementation", "library", Bottleneck(bottleneck))
