"""Who is named because its calibration kernel takes another time."""

from __future__ import annotations

from tools.cluster.calibration import deviating, in_words, is_news


def test_the_odd_one_of_three_is_named() -> None:
    """Who lies more than 3 % from the median is named, and nobody else."""
    assert list(deviating({"a": 100.0, "b": 101.0, "c": 104.5})) == ["c"]


def test_of_two_that_differ_both_are_named() -> None:
    """Nobody knows yet which of them is right."""
    assert sorted(deviating({"a": 100.0, "c": 104.5})) == ["a", "c"]


def test_the_odd_one_is_named_again_once_it_is_known() -> None:
    """A note is said once; but what was said of two is said anew when a third one shows which of them is odd."""
    of_two, of_three = in_words("c", 0.022, 2), in_words("c", 0.035, 3)
    assert is_news(of_two, "")
    assert is_news(of_three, of_two)
    assert not is_news(of_three, of_three)
    assert not is_news("", of_two)
