"""The beginning of a run: all of it is there, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.run.assembly import assemble, start_run
from graphs.run.settings import RunSettings
from tests.support.loop import small_problem
from tools.errors import UserError
from tools.records import Problem
from tools.tracing import RunStore
from tools.tracing.finding import find_run

SETTINGS = RunSettings(target="h200", memory=False, evaluator="local", devices="interpreter")


def test_a_run_that_can_be_found_has_its_problem(tmp_path: Path) -> None:
    """Nothing half made lies where runs are looked for, and what is there can be resumed."""
    store = start_run(small_problem(), SETTINGS, tmp_path, "one")
    assert find_run(tmp_path, "one") == store.folder
    assert list(store.all("problem", Problem).values()) == [small_problem()]
    assert list((tmp_path / "runs").glob("*/*/run.db")) == []


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    """A second run of one name is refused, and the first is left as it is."""
    first = start_run(small_problem(), SETTINGS, tmp_path, "one")
    first.set_meta("mine", "yes")
    with pytest.raises(UserError, match="exists already"):
        start_run(small_problem(), SETTINGS, tmp_path, "one")
    assert first.meta("mine") == "yes"


def test_a_run_without_a_problem_is_not_to_be_resumed(tmp_path: Path) -> None:
    """What an earlier version was killed in making says once what to do, in one voice: start it again."""
    with pytest.raises(UserError, match="nothing to resume") as refused:
        assemble(RunStore.create(tmp_path / "runs" / "old", {"settings": SETTINGS.model_dump_json()}))
    assert "start the run again" in refused.value.mend
