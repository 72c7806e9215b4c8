"""Who plays which role."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agents import TeamSettings, build_team, team_settings
from agents.models import MemoryCalls, ModelSettings
from tools.errors import UserError


async def test_no_model_means_all_built_in() -> None:
    """Without a model every role is built-in, and the description says so."""
    team = build_team(TeamSettings())
    assert {team.planner.name, team.coder.name, team.profiler.name, team.reviewer.name} == {"builtin"}
    assert team.describe().endswith("(no language model)")


async def test_model_takes_every_role() -> None:
    """With a model every role uses it, the coder together with the built-in one; one client serves all."""
    team = build_team(team_settings("m", "http://127.0.0.1:9/v1"), MemoryCalls())
    assert (team.planner.name, team.coder.name, team.profiler.name, team.reviewer.name) == ("m", "builtin+m", "m", "m")
    assert len(team.models) == 1
    await team.close()


async def test_roles_can_differ() -> None:
    """Single roles can be built-in, or have a model of their own."""
    team = build_team(team_settings("m", "http://127.0.0.1:9/v1", ["planner=builtin", "coder=llm:big", "profiler=builtin"]))
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
