"""What of a candidate is confirmed and delivered: the source with its guard."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.run.assembly import start_run
from graphs.run.settings import RunSettings
from graphs.run.starting import read_start
from tests.support.loop import small_services
from tools.errors import UserError
from tools.guards import contract_of, guarded, unguarded
from tools.records import ROOT, Action, ActionKind, Candidate, ProblemForm


def test_the_search_judges_a_source_and_the_confirmation_the_guarded_one(tmp_path: Path) -> None:
    """How a guard is written changes no candidate: only what is confirmed has one, by the setting with the reference in it."""
    services = small_services(tmp_path / "run")
    action = Action(kind=ActionKind.TILING, region="r0")
    candidate = Candidate(problem=services.problem.id, parent=ROOT, action=action, source="# time: 40.0\n", coder="test")
    confirmed = services.request(candidate, confirm=True).source
    assert services.request(candidate).source == candidate.source == unguarded(confirmed)
    assert "def reference()" not in confirmed
    services.settings = services.settings.model_copy(update={"fallback": "reference"})
    assert "def reference()" in services.request(candidate, confirm=True).source


def test_a_run_that_starts_from_a_delivered_file_leaves_its_guard_off(tmp_path: Path) -> None:
    """The first candidate is the source alone: it gets a guard of its own when it is confirmed."""
    source = "class ModelNew:\n    pass\n"
    contract = contract_of(small_services(tmp_path / "run").problem, ())
    (tmp_path / "kernel.py").write_text(guarded(source, contract))
    assert read_start(tmp_path / "kernel.py") == source


def test_a_reference_that_no_file_can_carry_is_refused_at_the_start(tmp_path: Path) -> None:
    """Falling back to an exported module is not possible, and that is said before anything is made."""
    problem = small_services(tmp_path / "run").problem.model_copy(update={"form": ProblemForm.EXPORTED})
    with pytest.raises(UserError, match="cannot carry its reference: it is an exported module"):
        start_run(problem, RunSettings(fallback="reference"), tmp_path)
    assert not (tmp_path / "runs").exists()
