"""Harder uses of a recorded landscape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.landscape_views import first_place, from_slowest, near
from benchmarks.search_separation import VIEWS, climb, room
from graphs.search.landscape import Landscape, landscape_files, load_landscapes
from tests.graphs.search.synthetic import easy_landscape
from tools.records import ROOT

EASY = easy_landscape()
CLIMBS = Path(__file__).parents[3] / "docs" / "results" / "search-methods" / "climbs.jsonl"
"""Written by `python -m benchmarks.search_separation --budget 32 --seeds 10 --out docs/results/search-methods`."""


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


@pytest.mark.parametrize("method", ["greedy", "evolution"])
def test_the_committed_climbs_are_of_these_methods(method: str) -> None:
    """A climb made again goes as the committed one; else the benchmark is to be run again."""
    landscape = next(one for one in load_landscapes(landscape_files()[0])[1] if one.problem == "row_mean")
    view = "single rungs, from the slowest schedule"
    lines = map(json.loads, CLIMBS.read_text().splitlines())
    old = next(c for c in lines if (c["view"], c["problem"], c["method"], c["seed"]) == (view, "row_mean", method, 0))
    assert climb(view, VIEWS[view](landscape), method, 0, 32).climbed == pytest.approx(old["climbed"], abs=1e-3)
