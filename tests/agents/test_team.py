"""Who plays which role."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from agents import VARIANTS, TeamSettings, build_team, team_settings
from agents.models import MemoryCalls, ModelSettings
from agents.team.settings import Team
from tools.errors import UserError


async def test_no_model_means_all_built_in() -> None:
    """Without a model every role is built-in, and the description says so."""
    team = build_team(TeamSettings())
    assert {team.planner.name, team.coder.name, team.profiler.name, team.reviewer.name} == {"builtin"}
    assert team.describe().endswith("(no language model)")


@pytest.mark.parametrize(
    ("team", "names"),
    [
        ("solo", ("solo", "builtin+m", "builtin", "builtin")),
        ("pair", ("solo", "builtin+m", "builtin", "m")),
        ("full", ("m", "builtin+m", "builtin", "builtin")),
    ],
)
async def test_a_team_shares_the_roles_out(team: Team, names: tuple[str, ...]) -> None:
    """Solo joins planner and coder, pair adds a reviewer, full has a planner of its own; profiler and reviewer else are built-in."""
    made = build_team(team_settings("m", "http://127.0.0.1:9/v1", team=team), MemoryCalls())
    assert (made.planner.name, made.coder.name, made.profiler.name, made.reviewer.name) == names
    await made.close()


async def test_model_takes_every_role() -> None:
    """A model can have every role, the coder together with the built-in one; one client serves all."""
    words = ["profiler=llm", "reviewer=llm"]
    team = build_team(team_settings("m", "http://127.0.0.1:9/v1", words, team="full"), MemoryCalls())
    assert (team.planner.name, team.coder.name, team.profiler.name, team.reviewer.name) == ("m", "builtin+m", "m", "m")
    assert len(team.models) == 1
    await team.close()


async def test_a_model_without_a_coder_plans() -> None:
    """Where the coder is built-in a team of one leaves the planning to the model: nobody else could ask it."""
    team = build_team(team_settings("m", "http://127.0.0.1:9/v1", ["coder=builtin"]), MemoryCalls())
    assert (team.planner.name, team.coder.name) == ("m", "builtin")
    await team.close()


def test_settings_from_before_there_were_teams_mean_what_they_meant() -> None:
    """Stored settings without a team are read as one agent a role, profiler and reviewer among them, so that their runs go on alike."""
    old = team_settings("m", "http://127.0.0.1:9/v1").model_dump(mode="json", exclude={"team"})
    read = TeamSettings.model_validate_json(json.dumps(old))
    assert [read.variant(role) for role in VARIANTS] == ["llm", "mixed", "llm", "llm"]
    assert TeamSettings.model_validate_json("{}").models() == ()


async def test_roles_can_differ() -> None:
    """Single roles can be built-in, or have a model of their own."""
    team = build_team(team_settings("m", "http://127.0.0.1:9/v1", ["planner=builtin", "coder=llm:big", "reviewer=llm"]))
    assert (team.planner.name, team.coder.name, team.profiler.name, team.reviewer.name) == ("builtin", "big", "builtin", "m")
    assert {model.name for model in team.models} == {"m", "big"}


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("", "", ["coder=llm"]), "needs a language model"),
        (("m", "", ["coder=magic"]), "Choose one of: builtin, llm, mixed"),
        (("m", "", ["cook=builtin"]), "Choose one of: planner, coder, profiler, reviewer"),
        (("m", "", ["coder"]), "Write it like coder=builtin"),
        (("", "http://x/v1", []), "but no model"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, str, list[str]], what: str) -> None:
    """Each wrong word on the command line is refused with what there is to choose from."""
    with pytest.raises(UserError, match=what):
        team_settings(*words)


def test_settings_hold_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written down with a run never holds a key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    settings = team_settings("m", "", [])
    assert "sk-secret" not in settings.model_dump_json()
    assert TeamSettings.model_validate_json(settings.model_dump_json()) == settings
    assert settings.model == ModelSettings(name="m")


def test_importing_the_agents_is_light() -> None:
    """The command line can import the agents without waiting for LangChain, torch or a template engine."""
    code = "import agents, sys; print([m for m in ('langchain_openai', 'openai', 'torch', 'jinja2', 'chromadb') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
