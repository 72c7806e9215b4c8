"""Harder uses of a recorded landscape."""

from __future__ import annotations

from benchmarks.landscape_views import first_place, from_slowest, near
from benchmarks.search_separation import climb, room
from graphs.search.landscape import Landscape
from tests.graphs.search.synthetic import easy_landscape
from tools.records import ROOT

EASY = easy_landscape()


def _blocks(landscape: Landscape, start: str) -> set[object]:
    return {step.action.parameters["BLOCK_N"] for step in landscape.from_place[start] if "BLOCK_N" in step.action.parameters}


def test_single_rungs_move_by_a_factor_of_two() -> None:
    """From a tile of 64 only 32 and 128 are left, words stay, and no place or time is changed."""
    place = "64-4-2-looped"
    view = near(EASY)
    assert _blocks(EASY, place) == {16, 32, 128, 256}
    assert _blocks(view, place) == {32, 128}
    assert any("algorithm" in step.action.parameters for step in view.from_place[place])
    assert set(view.places) <= set(EASY.places)


def test_what_is_not_known_of_a_place_stays_open() -> None:
    """The reference has no tile yet: all of its steps stay."""
    assert near(EASY).from_place[ROOT] == EASY.from_place[ROOT]


def test_the_slowest_start_can_reach_the_fastest() -> None:
    """The reference's one step leads to the slowest place from which the fastest is reachable, and there is more to climb than before."""
    view = from_slowest(near(EASY))
    assert [step.end for step in view.from_place[ROOT]] == [first_place(view)]
    assert view.best_speedup == EASY.best_speedup
    assert room(view) > room(EASY)


def test_a_climb_rises_to_one_and_never_falls() -> None:
    """The share of the climb is monotone, and a search that may try everything climbs all of it."""
    climbed = climb("x", EASY, "greedy", 0, 121).climbed
    assert climbed == sorted(climbed)
    assert climbed[-1] == 1.0
