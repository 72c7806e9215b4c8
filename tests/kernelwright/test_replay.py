"""Repeating runs from their record, over the command line."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents import TeamSettings
from agents.models.prices import PRICE_FOLDER
from agents.samples import case as samples
from graphs.run.records import Recall
from kernelwright.cli.app import app
from tests.agents.models.playing import EVERY, model_settings, play
from tests.support.recorded import RECORDED, restored
from tests.support.scenarios import block_code, block_plan, block_team
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import ROOT, Budget, Candidate, Plan
from tools.tracing import RunStore

BY_HAND = "middle_norm_gate-20261126-070726-25b7"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The recorded run that ships with the tests: what its model says is scripted, see the README beside it."""
    return restored("scripted", tmp_path / "scripted")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can be connected to, and there is no key."""

    def refuse(*_: object) -> None:
        raise AssertionError("a replay must ask nobody")

    for name in ("OPENAI_API_KEY", "KERNELWRIGHT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def _replay(folder: Path, *options: str) -> tuple[int, dict[str, object]]:
    done = CliRunner().invoke(app, ["replay", str(folder), "--json", *options])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.usefixtures("no_network")
def test_the_shipped_run_reaches_the_same_plans_and_sources(recorded: Path) -> None:
    """A run recorded by an earlier version is repeated by this one: no key, no network, the same plans and sources."""
    status, said = _replay(recorded)
    assert said["divergences"] == []
    assert (status, said["same"]) == (0, True)
    assert said["plans"] and said["candidates"] and said["calls"]  # noqa: PT018 - none of them may be empty


@pytest.mark.usefixtures("no_network")
def test_the_run_that_was_answered_by_hand_is_repeated(tmp_path: Path) -> None:
    """As it is handed over, one file: imported, it is repeated with the answers that its designs and kernels came from."""
    done = CliRunner().invoke(app, ["runs", "--import", str(RECORDED / "by_hand.json"), "--home", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    status, said = _replay(tmp_path / "runs" / BY_HAND)
    assert (status, said["divergences"]) == (0, [])
    assert (said["plans"], said["candidates"], said["calls"]) == (3, 3, 3)


def test_a_run_with_failures_and_repairs_is_repeated(tmp_path: Path) -> None:
    """Failed calls fail again, repairs are made again: nothing differs, not even a prompt."""
    rules = [
        Rule(role="coder", answer=block_code(64, "WRONG"), uses=1),
        Rule(role="planner", status=500, uses=1),
        Rule(role="planner", answer=block_plan(64, region="moon"), uses=1),
    ]
    _record(tmp_path / "run", [*rules, *block_team()])
    status, said = _replay(tmp_path / "run", "--strict")
    assert (status, said["divergences"], said["prompts"]) == (0, [], [])


def test_another_source_is_the_first_difference(tmp_path: Path) -> None:
    """Where a recorded answer is changed afterwards, the step that it changes is named, and the status is 1."""
    _record(tmp_path / "run", block_team())
    database = sqlite3.connect(tmp_path / "run" / "run.db")
    database.execute("UPDATE calls SET json = replace(json, '# block: 64', '# block: 32') WHERE json LIKE '%\"role\":\"coder\"%'")
    database.commit()
    database.close()
    status, said = _replay(tmp_path / "run")
    first = said["divergences"][0]  # type: ignore[index]
    assert status == 1
    assert "which the recorded run never did" in first["what"]
    assert any("instead of" in one["what"] and "line 1 differs" in one["what"] for one in said["divergences"])  # type: ignore[attr-defined]


def test_a_run_of_one_agent_is_repeated(tmp_path: Path) -> None:
    """Who works how is in the record: solo's designs, their history and their repair are asked for alike, to the last prompt."""
    rules = [
        Rule(role="coder", answer=f"Idea: {block}.\n{block_code(block, verdict)}", uses=1)
        for block, verdict in ((64, "WRONG"), (256, "PASS"))
    ]
    rules += [Rule(role="repairer", answer=block_code(64)), Rule(role="coder", answer=block_code(128))]
    with ScriptedServer(Scenario(rules=rules)) as server:
        team = TeamSettings(model=model_settings(server, retries=0), team="solo", roles={"coder": "llm"})
        asyncio.run(play(tmp_path / "run", team, budget=Budget(evaluations=4))).store.close()
    status, said = _replay(tmp_path / "run", "--strict")
    assert (status, said["divergences"]) == (0, [])
    assert said["calls"] == 4


def test_a_price_table_may_stay_where_the_run_was_recorded(tmp_path: Path) -> None:
    """Nothing is paid again, so a run with a price table of its own is repeated on a machine without that file."""
    prices = tmp_path / "prices.json"
    prices.write_text((PRICE_FOLDER / "openai.json").read_text())
    rules = [Rule(role="coder", answer=block_code(128))]
    with ScriptedServer(Scenario(rules=rules)) as server:
        team = TeamSettings(model=model_settings(server, retries=0), team="solo", roles={"coder": "llm"}, prices=str(prices))
        asyncio.run(play(tmp_path / "run", team, budget=Budget(evaluations=2))).store.close()
    prices.unlink()
    status, said = _replay(tmp_path / "run")
    assert (status, said["divergences"]) == (0, [])
    assert said["calls"]


def test_a_prompt_in_other_words_is_named(tmp_path: Path) -> None:
    """A changed prompt is no difference in plans and sources; with --strict it is one, and the line is shown."""
    _record(tmp_path / "run", block_team())
    database = sqlite3.connect(tmp_path / "run" / "run.db")
    row = 'SELECT key, json FROM calls WHERE json LIKE \'%"role":"planner"%\' ORDER BY created LIMIT 1'
    key, text = database.execute(row).fetchone()
    changed = json.loads(text)
    changed["messages"][0]["content"] = "You are the planner of old."
    database.execute("UPDATE calls SET key = 'old', json = ? WHERE key = ?", (json.dumps(changed), key))
    database.commit()
    database.close()
    assert _replay(tmp_path / "run")[0] == 0
    status, said = _replay(tmp_path / "run", "--strict")
    assert status == 1
    assert "of old" in said["prompts"][0]["line"]  # type: ignore[index]


def test_a_coder_is_not_shown_what_a_later_round_recalled(tmp_path: Path) -> None:
    """Memory brings up in a replay what it brought up in that round: prompts stay as they were."""
    with ScriptedServer(Scenario(rules=[Rule(role="coder", answer=block_code(64))])) as server:
        team = TeamSettings(model=model_settings(server, retries=0), team="solo", roles={"coder": "llm"})
        asyncio.run(play(tmp_path / "run", team, budget=Budget(evaluations=1))).store.close()
    store = RunStore(tmp_path / "run")
    store.put("recall", f"9/{ROOT}", Recall(recalled=(samples.recalled(samples.strategy()),)), subject=ROOT)
    store.close()
    status, said = _replay(tmp_path / "run", "--strict")
    assert (status, said["prompts"]) == (0, [])


def test_wrong_input_is_refused(tmp_path: Path) -> None:
    """A run that is not there, or has not ended, is the user's to mend."""
    done = CliRunner().invoke(app, ["replay", "nowhere", "--home", str(tmp_path)])
    assert "There is no run 'nowhere'" in str(done.exception)
    RunStore.create(tmp_path / "run", {"run": "run"}).close()
    done = CliRunner().invoke(app, ["replay", str(tmp_path / "run")])
    assert "has not ended" in str(done.exception)


def test_the_record_is_left_as_it_was(recorded: Path) -> None:
    """A replay writes nothing into the record."""
    before = RunStore(recorded)
    plans, sources, spent = before.all("plan", Plan), before.all("candidate", Candidate), before.spent()
    before.close()
    _replay(recorded)
    after = RunStore(recorded)
    assert (after.all("plan", Plan), after.all("candidate", Candidate), after.spent()) == (plans, sources, spent)
    after.close()


def _record(folder: Path, rules: list[Rule]) -> None:
    with ScriptedServer(Scenario(rules=rules)) as server:
        team = TeamSettings(model=model_settings(server, retries=0), team="full", roles=EVERY)
        asyncio.run(play(folder, team)).store.close()
