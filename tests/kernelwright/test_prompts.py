"""`kernelwright prompts`: every prompt as models see it."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from agents.prompting.frame import CONTEXTS
from agents.samples.prompts import corrections, sample_prompts
from kernelwright.cli.app import app
from tools.errors import UserError


def printed(*arguments: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(app, ["prompts", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_every_prompt_is_printed_as_models_see_it() -> None:
    """Each message of each role stands in the output word for word, under what is asked there."""
    text = printed()
    for sample in (*sample_prompts(), *corrections()):
        assert f"=== {sample.role}: {sample.title} (" in text
        assert all(message.content in text for message in sample.messages)


def test_one_role_is_shown_alone() -> None:
    """A role's name leaves out the others."""
    titles = [line for line in printed("profiler").splitlines() if line.startswith("=== ")]
    assert titles
    assert all(line.startswith("=== profiler: ") for line in titles)


def test_json_has_messages_tokens_and_limits() -> None:
    """With --json each prompt says its role, its limit, and of each message about how many tokens it has."""
    found = json.loads(printed("--json"))
    assert [one["asked"] for one in found] == [one.title for one in (*sample_prompts(), *corrections())]
    assert all(one["limit"] == CONTEXTS[one["role"]] for one in found)
    assert all(message["tokens"] > 0 for one in found for message in one["messages"])


def test_an_unknown_role_is_refused() -> None:
    """A role that has no prompts is refused with those that have some."""
    done = CliRunner().invoke(app, ["prompts", "judge"])
    assert isinstance(done.exception, UserError)
    assert "planner, coder" in done.exception.mend
