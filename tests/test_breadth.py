"""Which combinations `make test` tries, and which `make test-all`."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from tests.support.breadth import covering, unlike

CASES = list(product("abcdef", (80, 90, 100), ("flat", "tile")))


@pytest.mark.parametrize("times", [1, 2])
def test_each_value_is_tried_so_many_times_and_few_cases_do(times: int) -> None:
    """Of thirty-six cases there are as many as the longest list has values, for each time."""
    chosen = covering(CASES, times, everything=False)
    seen = Counter(value for case in chosen for value in case)
    assert set(seen) == {value for case in CASES for value in case}
    assert min(seen.values()) == times
    assert len(chosen) == 6 * times


def test_a_value_in_fewer_cases_is_tried_in_all_of_them() -> None:
    """What stands in one case alone cannot be tried twice."""
    assert ("z", 80) in covering([("a", 80), ("a", 90), ("z", 80)], 2, everything=False)


def test_what_a_test_looks_at_is_among_them() -> None:
    """Cases that are named are taken, and what they have is tried by them."""
    chosen = covering(CASES, also={("a", 80, "tile"), ("a", 90, "tile")}, everything=False)
    assert {("a", 80, "tile"), ("a", 90, "tile")} <= set(chosen)
    assert [case for case in chosen if case[0] == "a"] == [("a", 80, "tile"), ("a", 90, "tile")]


def test_everything_is_every_case() -> None:
    """`make test-all` leaves none out."""
    assert covering(CASES, everything=True) == CASES


def test_cases_that_are_alike_are_left_out_by_name_or_by_their_first_value() -> None:
    """Two of six cases have a first value that is named, and one is named as a whole; `make test-all` has all of them."""
    cases = list(product("abc", (80, 90)))
    assert unlike(cases, {"a", ("b", 90)}, everything=False) == [("b", 80), ("c", 80), ("c", 90)]
    assert unlike("abc", {"a"}, everything=False) == ["b", "c"]
    assert unlike(cases, {"a", ("b", 90)}, everything=True) == cases


def test_what_is_left_out_exists() -> None:
    """A name that no case has any more is an error, not a case that runs unseen."""
    with pytest.raises(AssertionError, match="no case is named d"):
        unlike("abc", {"d"}, everything=True)
