"""A run goes on with its models' server elsewhere, or asked with more patience; what would ask a question anew is refused."""

from __future__ import annotations

import pytest

from agents import TeamSettings, team_settings
from agents.team.moving import moved
from tools.errors import UserError

OLD, NEW, OTHER = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1", "http://127.0.0.1:3/v1"


def team() -> TeamSettings:
    """Two models at one server, and a planner's own at another."""
    return team_settings("a,b", OLD, [f"planner=llm:c@{OTHER}"], team="full")


def test_a_server_that_has_moved_is_found_again() -> None:
    """Models of the run's server go on at the new address, one of another server stays where it is; all else is as it was."""
    found = moved(team(), NEW)
    assert [(one.name, one.base_url) for one in found.models()] == [("c", OTHER), ("a", NEW), ("b", NEW)]
    found = moved(team_settings("a,b", OLD), NEW)
    assert [(one.name, one.base_url) for one in found.models()] == [("a", NEW), ("b", NEW)]
    assert moved(found, OLD) == team_settings("a,b", OLD)
    assert moved(team()) == team()


def test_patience_can_be_given_later() -> None:
    """To all models, or to one by its name."""
    found = moved(team(), words=["timeout_s=900", "b.retries=1"])
    assert {one.name: (one.timeout_s, one.retries) for one in found.models()} == {"a": (900, 4), "b": (900, 1), "c": (900, 4)}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("temperature=0", "A run keeps its temperature"),
        ("x.timeout_s=1", "This run has no model 'x'"),
        ("timeout_s=soon", "The setting timeout_s of the model"),
        ("patience=9", "is no setting of a model"),
    ],
)
def test_what_cannot_be_changed_is_refused(word: str, said: str) -> None:
    """With what can be instead."""
    with pytest.raises(UserError, match=said):
        moved(team(), words=[word])


def test_a_run_without_a_model_has_no_server() -> None:
    """Nothing is changed in silence."""
    with pytest.raises(UserError, match="asks no model"):
        moved(TeamSettings(), NEW)
