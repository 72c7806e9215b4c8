"""Landscapes and the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from benchmarks.search.landscape import Landscape, LandscapeHeader, Place, Step, load_landscapes
from benchmarks.search.simulator import Simulation
from graphs.search.protocol import SearchSettings
from tests.graphs.search.synthetic import easy_landscape, small_landscape
from tools.errors import UserError
from tools.records import ROOT, Action, ActionKind, Verdict

HEADER = LandscapeHeader(synthetic=True, device="none", recorded="2026-11-21", versions={}, method="made up for a test")


def test_a_written_table_reads_the_same(tmp_path: Path) -> None:
    """Header and landscapes survive their JSON lines."""
    path = tmp_path / "table.jsonl"
    path.write_text(HEADER.model_dump_json() + "\n" + small_landscape().model_dump_json(exclude_defaults=True) + "\n")
    assert load_landscapes(path) == (HEADER, (small_landscape(),))


@pytest.mark.parametrize("text", ["", "{}\n", '{"schema_version": 99, "synthetic": true}\n', "not json\n"])
def test_a_damaged_table_is_refused(tmp_path: Path, text: str) -> None:
    """An empty, strange or foreign file is a user's error that names it."""
    path = tmp_path / "table.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=r"table\.jsonl"):
        load_landscapes(path)


def test_a_failure_has_no_time() -> None:
    """A place that did not pass cannot have a time, and one that passed must."""
    with pytest.raises(ValidationError):
        Place(id="x", verdict=Verdict.WRONG, time_us=3.0)
    with pytest.raises(ValidationError):
        Place(id="x")


def test_a_step_to_nowhere_is_refused() -> None:
    """Every step joins recorded places."""
    step = Step(start=ROOT, action=Action(kind=ActionKind.TILING, region="r0"), end="nowhere")
    with pytest.raises(ValidationError, match="nowhere"):
        Landscape(problem="p", eager_us=1.0, places=(), steps=(step,))


def test_reaching_a_place_again_costs_nothing() -> None:
    """Two ways to one schedule are two plans and one evaluation."""
    simulation = Simulation(small_landscape(), "random", SearchSettings(seed=1, batch=2))
    simulation.run(50)
    assert sum(len(actions) for actions in simulation.tried.values()) == 4
    assert len(simulation.evaluated) == 3


def test_the_speedup_is_against_the_better_baseline() -> None:
    """Of eager and torch.compile the faster one counts."""
    landscape = easy_landscape()
    fastest = min(place.time_us for place in landscape.places if place.time_us)
    assert landscape.best_speedup == pytest.approx(95.0 / fastest)
