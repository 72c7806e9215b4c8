"""The tuner's search on points whose times are computed."""

from __future__ import annotations

import math

from tools.tuning import Point, Search

POINTS = [Point(f"{a}/{b}", (float(a), float(b)), 10.0 + a + b) for a in range(8) for b in range(8)]
"""The model likes small numbers."""


def truth(name: str) -> float:
    """Fastest at 5/2, where the model does not expect it."""
    a, b = map(int, name.split("/"))
    return 40.0 + 6.0 * abs(a - 5) + 3.0 * abs(b - 2)


def run(search: Search, trials: int) -> list[str]:
    """Ask in waves of four and answer truly."""
    asked: list[str] = []
    while len(asked) < trials:
        wave = search.ask(4)
        for name in wave:
            search.tell(name, truth(name))
        asked += wave
    return asked


def test_first_wave_follows_the_model() -> None:
    """Before anything is measured the model's best point is asked for first."""
    assert Search(POINTS).ask(4)[0] == "0/0"


def test_known_points_come_before_all_others() -> None:
    """What an earlier run had found is asked for first, though the model would not."""
    assert Search(POINTS, first=["7/7", "3/3"]).ask(3)[:2] == ("7/7", "3/3")


def test_measurements_overrule_the_model() -> None:
    """A point where the model is wrong is found in far fewer trials than there are points."""
    search = Search(POINTS, seed=3)
    run(search, 24)
    assert truth(search.best or "0/0") <= 1.1 * 40.0


def test_same_seed_same_asks() -> None:
    """The same points, answers and seed give the same asks; a finished wave need not be asked for in one piece."""
    assert run(Search(POINTS, seed=5), 20) == run(Search(POINTS, seed=5), 20)
    assert Search(POINTS, seed=5).ask(3) == Search(POINTS, seed=5).ask(8)[:3]


def test_nothing_is_asked_twice() -> None:
    """Every point is asked for once, and then the search is over."""
    search = Search(POINTS[:10])
    asked = run(search, 10)
    assert sorted(asked) == sorted(point.name for point in POINTS[:10])
    assert search.ask(4) == ()


def test_failures_are_no_best_and_repel() -> None:
    """Points that failed are never the best, and their neighbours are asked for later."""
    search = Search(POINTS)
    for name in ("0/0", "0/1", "1/0", "1/1"):
        search.tell(name, None)
    assert search.best is None
    assert "0/2" not in search.ask(1)


def test_a_model_wrong_by_a_factor_is_not_wrong() -> None:
    """Times that are all three times the model's leave its ranking as it is."""
    search = Search(POINTS)
    for point in POINTS[1:9]:
        search.tell(point.name, 3 * point.predicted_us)
    times = {point.name: point.predicted_us for point in POINTS}
    left = sorted(times[point.name] for point in POINTS if point not in POINTS[1:9])
    # one place of a wave is drawn
    assert sorted(times[name] for name in search.ask(4))[:2] == left[:2]
    assert math.isfinite(left[0])
