"""A run killed with SIGKILL at both edges of every node, resumed each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.reviewer.protocol import Review
from tests.support.killed_run import KilledRuns
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import Candidate, Evaluation, Plan, Record
from tools.tracing import RunStore

NODES = ("measure", "recall", "plan", "write", "evaluate", "repair", "profile", "review", "learn", "roll_back", "confirm")
KINDS: tuple[tuple[str, type[Record]], ...] = (("plan", Plan), ("candidate", Candidate), ("evaluation", Evaluation), ("review", Review))
KILLED = -9


def _kill_everywhere(runs: KilledRuns, folder: Path, *base_url: str) -> str:
    """Kill and resume at both edges of every node, then let the run end; return what it delivered."""
    for node in NODES:
        for edge in ("enter", "leave"):
            done = runs.run(folder, node, edge, *base_url)
            assert done.returncode == KILLED, f"{node} was not reached: {done.stderr}"
    last = runs.run(folder, "-", "enter", *base_url)
    assert last.returncode == 0, last.stderr
    return last.stdout


def _records(folder: Path) -> dict[str, dict[str, Record]]:
    store = RunStore(folder)
    return {kind: store.all(kind, type_) for kind, type_ in KINDS}


def _assert_nothing_evaluated_twice(folder: Path) -> None:
    asked = (folder / "evaluations.log").read_text().splitlines()
    assert len(asked) == len(set(asked))


@pytest.mark.slow
def test_a_run_killed_in_every_node_ends_like_an_undisturbed_one(runs: KilledRuns, tmp_path: Path) -> None:
    """Killed on entering and on leaving each node in turn, then resumed: the same plans, candidates, evaluations, reviews and delivery,
    and no evaluation done twice.
    """
    undisturbed, killed = tmp_path / "a" / "run", tmp_path / "b" / "run"
    expected = runs.run(undisturbed, "-", "enter")
    assert expected.returncode == 0, expected.stderr
    assert _kill_everywhere(runs, killed) == expected.stdout
    assert _records(killed) == _records(undisturbed)
    _assert_nothing_evaluated_twice(killed)


def _plan(block: int) -> str:
    fixed = {"kind": "tiling", "region": "exp", "rationale": "try it", "predicted_gain": None, "strategies": []}
    return json.dumps({"plans": [{**fixed, "parameters": [{"name": "BLOCK", "value": block}]}]})


def _code(block: str, verdict: str) -> str:
    return f"```python\n# block: {block}\n# verdict: {verdict}\nclass ModelNew:\n    pass\n```"


def _scenario() -> Scenario:
    """A model that plans four blocks, writes one of them wrong and mends it, gives up on another, and then has no more plans."""
    diagnosis = json.dumps({"bottleneck": "dram-bandwidth", "evidence": "It is.", "figures": []})
    return Scenario(
        rules=[
            *(Rule(role="planner", answer=_plan(block), uses=1) for block in (64, 32, 16, 128)),
            Rule(role="planner", answer=json.dumps({"plans": []})),
            Rule(role="repairer", match="block: 32", answer=_code("32", "PASS")),
            Rule(role="repairer", answer="I do not know how to mend it."),
            Rule(role="coder", match=r'"BLOCK": (?P<block>16|32)\b', answer=_code("${block}", "WRONG")),
            Rule(role="coder", match=r'"BLOCK": (?P<block>\d+)', answer=_code("${block}", "PASS")),
            Rule(role="profiler", answer=diagnosis),
            Rule(role="reviewer", answer=json.dumps({"concerns": [], "lesson": "Blocks matter."})),
        ]
    )


@pytest.mark.slow
def test_no_model_call_is_paid_twice(runs: KilledRuns, tmp_path: Path) -> None:
    """Driven by a language model and killed at both edges of every node, a run asks the server what an undisturbed one asks, once each."""
    undisturbed, killed = tmp_path / "a" / "run", tmp_path / "b" / "run"
    with ScriptedServer(_scenario()) as server:
        expected = runs.run(undisturbed, "-", "enter", server.url)
        assert expected.returncode == 0, expected.stderr
        bodies = sorted(entry.body_hash for entry in server.requests)
    with ScriptedServer(_scenario()) as server:
        delivered = _kill_everywhere(runs, killed, server.url)
        assert sorted(entry.body_hash for entry in server.requests) == bodies
    assert delivered == expected.stdout
    assert {c.coder for c in RunStore(killed).all("candidate", Candidate).values()} == {"scripted"}
    _assert_nothing_evaluated_twice(killed)
