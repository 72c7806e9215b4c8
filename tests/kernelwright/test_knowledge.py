"""The `knowledge` commands, and memory that reflects at the end of runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from kernelwright.cli.app import main
from kernelwright.cli.shared.knowledge_store import print_notes
from kernelwright.screen.facts import candidate_facts, tree_facts
from knowledge.records import Outcome, Situation
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import HashingEmbedder
from tests.support.loop import small_services
from tools.records import Action, ActionKind, Bottleneck, Budget, OperatorFamily, Plan, Verdict

Command = Callable[..., str]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run `kernelwright knowledge …` in this test's home and return what it printed; `status` is the exit status expected."""

    def run(*arguments: str, status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["kernelwright", "knowledge", *arguments])
        monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == status, said.err
        assert "Traceback" not in said.err
        return said.out if status == 0 else said.err

    return run


@pytest.fixture
def taught(tmp_path: Path) -> str:
    """A store in the home with one action tried twice, on top of the seeds; its id."""
    situation = Situation(families=(OperatorFamily.SOFTMAX,), bottleneck=Bottleneck.LAUNCH, summary="A softmax of short rows.")
    base = KnowledgeBase(tmp_path / "home" / "knowledge", HashingEmbedder())
    fields: dict[str, Any] = {"situation": situation, "action": Action(kind=ActionKind.LAUNCH, region="r0", parameters={"num_warps": 2})}
    fields |= {"candidate": "c", "verdict": Verdict.PASS, "gain": 1.6, "predicted_gain": 3.0, "tier": "bracketed", "device": "H200"}
    for run in ("r1", "r2"):
        outcome = Outcome(run=run, plan="p", accepted=True, lesson="Two warps.", cited=(), recalled=(), **fields)
        (name,) = base.learn_now(outcome)
    base.close()
    return name


def test_learn_diff_and_revert(command: Command, taught: str) -> None:
    """A pass rewrites, `diff` shows it with its number, `revert` takes it back, and each speaks JSON."""
    assert json.loads(command("learn", "--embedder", "hashing", "--json"))["rewritten"] == [taught]
    (change,) = json.loads(command("diff", "--json"))
    assert "Record:" in command("diff", taught[:6])
    command("revert", str(change["change"]), "--reason", "a test")
    assert json.loads(command("show", taught, "--json"))["lesson"] == "Two warps."
    assert "no change 9999" in command("revert", "9999", "--reason", "x", status=2)


def test_show_tells_outcome_scope_and_worth(command: Command, taught: str) -> None:
    """One strategy whole: distribution, provenance, worth and history."""
    facts = json.loads(command("show", taught, "--json"))
    assert (facts["changes"]["tries"], facts["observed_gain"], facts["provenance"]) == (2, 1.6, ["r1/c", "r2/c"])
    assert facts["worth"]["cited"] == 0
    assert facts["history"]


def test_show_is_read_by_people_first(command: Command, taught: str) -> None:
    """Without `--json`: the lesson, each trial with what it weighs, and no braces."""
    shown = command("show", taught)
    assert "lesson:    Two warps." in shown
    assert shown.count("trial:     r") == 2
    assert "weighs 1.00" in shown
    assert "{" not in shown


def test_show_tells_what_each_trial_weighs_and_why(command: Command, taught: str, tmp_path: Path) -> None:
    """A trial with another compiler than the present one has lost a part, and says so; the shorter the half-life, the faster."""
    base = KnowledgeBase(tmp_path / "home" / "knowledge", HashingEmbedder())
    seen = base.experiences()[-1].outcome
    for run, triton in (("r3", "3.6.0"), ("r4", "3.9.0")):
        base.learn_now(seen.model_copy(update={"run": run, "versions": {"triton": triton}}))
    base.close()
    weights = json.loads(command("show", taught, "--half-life", "30", "--json"))["weights"]
    assert [(one["run"], one["weight"]) for one in weights] == [("r1", 1.0), ("r2", 1.0), ("r3", 0.7), ("r4", 1.0)]
    assert weights[2]["reasons"] == ["triton 3.6 → 3.9"]


def test_a_half_life_that_is_no_number_is_refused(command: Command, taught: str) -> None:
    """One line says what is wrong with it."""
    assert "Invalid value for '--half-life'" in command("prune", "--half-life", "nan", status=2)


def test_stats_tell_and_draw_the_calibration(command: Command, taught: str, tmp_path: Path) -> None:
    """The line says by how much predictions are off, the plot is an SVG."""
    said = command("stats", "--plot", str(tmp_path / "c.svg"))
    assert "off by a factor of 1.88" in said
    assert (tmp_path / "c.svg").read_text().count("<circle") == 2
    assert json.loads(command("stats", "--json"))["schema_version"] == 2


def test_tending_commands(command: Command, taught: str) -> None:
    """Merge and prune can be tried dry, retire asks for a reason, doctor finds all in order."""
    assert json.loads(command("merge", "--dry-run", "--embedder", "hashing", "--json")) == {"dry_run": True, "merged": []}
    assert json.loads(command("prune", "--dry-run", "--json"))["retired"] == []
    assert "retired" in command("retire", taught, "--reason", "superseded")
    assert "fine    log" in command("doctor", "--embedder", "hashing")


def test_list_filters(command: Command, taught: str) -> None:
    """By state and family; unknown words are refused with the known ones."""
    found = json.loads(command("list", "--state", "observed", "--family", "softmax", "--json"))
    assert [one["id"] for one in found] == [taught]
    assert "Choose one of" in command("list", "--family", "weaving", status=2)


def test_a_knowledge_base_can_be_named_itself(command: Command, taught: str, tmp_path: Path) -> None:
    """`--home` takes what a bench left in its folder of memories as well as a home."""
    folder = tmp_path / "home" / "knowledge"
    assert [one["id"] for one in json.loads(command("list", "--state", "observed", "--home", str(folder), "--json"))] == [taught]
    assert not (folder / "knowledge").exists()


def test_a_filter_that_finds_nothing_says_so(command: Command, taught: str) -> None:
    """Nothing is a line, not silence; a backend that there is none of is refused."""
    assert command("list", "--state", "confirmed") == "no strategies\n"
    assert json.loads(command("list", "--state", "confirmed", "--json")) == []
    assert "Choose one of: triton, cuda" in command("list", "--backend", "rocm", status=2)


def test_a_strategy_is_retired_once(command: Command, taught: str) -> None:
    """A second reason is refused, so that taking the retirement back brings the strategy back."""
    command("retire", taught, "--reason", "superseded")
    assert "is retired already: superseded" in command("retire", taught, "--reason", "again", status=2)
    (change,) = json.loads(command("diff", "--json"))
    command("revert", str(change["change"]), "--reason", "it was not")
    assert json.loads(command("show", taught, "--json"))["state"] == "observed"


def test_an_index_that_is_made_anew_is_said(taught: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a store had to mend on the way stands on standard error, away from what was asked for."""
    base = KnowledgeBase(tmp_path / "home" / "knowledge", HashingEmbedder())
    base.search("softmax")
    base.close()
    for file in (tmp_path / "home" / "knowledge" / "index").rglob("chroma.sqlite3"):
        file.write_bytes(b"no database" * 1000)
    base.search("softmax")
    print_notes(base)
    base.close()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("note: The vector index failed")


def test_export_and_import(command: Command, taught: str, tmp_path: Path) -> None:
    """What is exported is known already when it comes back; an existing file is not replaced."""
    command("export", str(tmp_path / "m.jsonl"))
    assert json.loads(command("import", str(tmp_path / "m.jsonl"), "--json"))["added"] == 0
    assert "exists already" in command("export", str(tmp_path / "m.jsonl"), status=2)


def test_a_server_that_is_down(command: Command, taught: str) -> None:
    """Doctor says so and ends with 1; a search is refused with one line and 2."""
    server = ("--embedder", "hashing", "--server", "http://127.0.0.1:9")
    assert "does not answer" in command("search", "x", *server, status=2)
    command("doctor", *server, status=1)


def test_worth_refuses_to_hold_everything_out(command: Command) -> None:
    """Something must be left to learn on."""
    assert "Nothing is left to learn on" in command("worth", "data/operators", "--held-out", "*", status=2)


def test_worth_names_a_server_that_is_down_before_it_begins(command: Command, tmp_path: Path) -> None:
    """One line says what does not answer, and no folder is made."""
    out = tmp_path / "worth"
    said = command("worth", "data/operators", "--held-out", "softmax", "--server", "http://127.0.0.1:9", "--out", str(out), status=2)
    assert "127.0.0.1:9 does not answer" in said
    assert not out.exists()


def test_the_group_shows_how_it_is_used(command: Command) -> None:
    """The help of the whole group has examples, one a line."""
    assert '\n    kernelwright knowledge search "softmax over a very long row"\n' in command("--help")


def test_stats_draw_the_trend(command: Command, taught: str, tmp_path: Path) -> None:
    """How far predictions were off, by stretches of runs, as a picture and as figures."""
    file = tmp_path / "trend.svg"
    facts = json.loads(command("stats", "--trend", str(file), "--stretch", "1", "--json"))
    assert [one["first"] for one in facts["trend"]] == list(range(1, len(facts["trend"]) + 1))
    assert file.read_text().startswith("<svg")


async def test_lessons_are_gone_over_at_the_end_of_runs(tmp_path: Path) -> None:
    """With a pass after every second run, the second run's end rewrites and says so, and its events name it."""
    said: list[str] = []
    for run in ("first", "second"):
        memory = KnowledgeBase(tmp_path / "knowledge", HashingEmbedder(), seeds=None, update_every=2)
        services = small_services(tmp_path / run, RunSettings(target="h200", budget=Budget(evaluations=8)), memory=memory)
        await execute(services, lambda event: said.append(event.get("said", "")))
    passes = [one for one in said if one]
    assert len(passes) == 1
    assert "Memory went over" in passes[0]
    assert memory.stats()["updates"] == 1
    assert memory.changes()


async def test_the_trace_says_what_a_recalled_strategy_was_worth(tmp_path: Path) -> None:
    """Beside why it was recalled stands what the plans that cited it came to."""
    for run in ("first", "second"):
        memory = KnowledgeBase(tmp_path / "knowledge", HashingEmbedder(), seeds=None)
        await execute(
            small_services(tmp_path / run, RunSettings(target="h200", budget=Budget(evaluations=6)), memory=memory), lambda e: None
        )
    store = small_services(tmp_path / "second").store
    plan = next(p for p in store.all("plan", Plan).values() if p.strategies)
    line = next(c for c in tree_facts(store)["candidates"] if c["plan"] == plan.id)
    worth = [one["worth"] for one in candidate_facts(store, line["id"])["recalled"] if one["id"] in plan.strategies]
    assert worth
    assert all("ended" in one for one in worth)


def test_a_strategy_is_listed_in_two_lines(command: Command, taught: str) -> None:
    """A list has the title in full, and what it rests on below it, however narrow the terminal is."""
    title, facts = command("list", "--state", "observed").splitlines()
    assert title == f"{taught[:8]}  Launch (num_warps=2) for softmax, limited by launch"
    assert facts.split() == ["launch;", "softmax,", "launch;", "observed,", "2", "tries,", "1.60x"]
