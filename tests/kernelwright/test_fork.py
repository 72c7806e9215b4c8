"""The command line of `fork`: what is taken over from the run, and what is refused before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import team_settings
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from kernelwright.cli.commands.fork import _agents, _searching
from tests.kernelwright.conftest import Refused
from tests.support.loop import small_services
from tools.errors import UserError

OLD = RunSettings(search="tree", search_settings=SearchSettings(seed=7, options={"explore": "2"}), team=team_settings("a-model"))


def test_a_run_that_is_not_there_is_refused(refused: Refused) -> None:
    """The line names the command that lists runs."""
    assert "kernelwright runs" in refused("fork", "nothing")


def test_a_run_without_a_right_candidate_is_refused(refused: Refused, tmp_path: Path) -> None:
    """Nothing is chosen where nothing passed, and no run is begun."""
    small_services(tmp_path / "home" / "runs" / "begun").store.close()
    assert "No candidate of that run passed" in refused("fork", "begun")
    assert [path.name for path in (tmp_path / "home" / "runs").iterdir()] == ["begun"]


def test_the_search_goes_on_as_it_was_unless_another_is_named() -> None:
    """Another method takes over seed and batch, and not the old one's own settings."""
    same = _searching(OLD, "", None, batch=4)
    assert (same.search, same.search_settings.batch, same.search_settings.options) == ("tree", 4, {"explore": "2"})
    other = _searching(OLD, "bandit", None)
    assert (other.search_settings.seed, other.search_settings.options) == (7, {})


def test_the_agents_stay_unless_others_are_named() -> None:
    """`--model` names others, `--built-in` none, and a setting of a model without a model is refused."""

    def given(model: str = "", base_url: str = "", *, built_in: bool = False) -> RunSettings:
        return _agents(OLD, model, "", base_url, None, "", None, built_in=built_in)

    assert given() is OLD
    assert given("b-model").team.model != OLD.team.model
    assert given(built_in=True).team.models() == ()
    with pytest.raises(UserError, match="no model"):
        given(base_url="http://localhost:1/v1")
    with pytest.raises(UserError, match="--built-in"):
        given("b-model", built_in=True)
