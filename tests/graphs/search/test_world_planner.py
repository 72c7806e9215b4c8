"""The world model's tree edited by a language-model planner, in whole runs against the scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.planner.world import Ended, TreeEdit, TreeEdits
from graphs.optimize.execute import execute
from graphs.search.wishes import EditWish
from graphs.search.world_asked import made, tree_check
from graphs.search.world_tree import TOP, WorldTree
from tests.graphs.search.asked_runs import asked_services, calls_for, considered, run_interrupted, search_settings
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import ROOT, Action, ActionKind, Plan

EMPTY: dict[str, Any] = {
    "kind": None,
    "region": None,
    "parameters": [],
    "score": None,
    "gain": None,
    "confidence": None,
    "difficulty": None,
}
NO_PLANS = Rule(role="planner", answer='{"plans": []}')
SETTINGS = search_settings("world-model", 6)


def _insert(node: int | str, block: int, **fields: Any) -> dict[str, Any]:
    action = {"kind": "tiling", "region": "r0", "parameters": [{"name": "BLOCK", "value": block}]}
    return {
        **EMPTY,
        "edit": "insert",
        "node": node,
        **action,
        "score": 7,
        "gain": 1.5,
        "difficulty": 2,
        "reason": f"Try {block}.",
        **fields,
    }


def _answer(*edits: dict[str, Any]) -> str:
    return json.dumps({"edits": list(edits)})


def _opened(*edits: dict[str, Any], uses: int = 0) -> Rule:
    return Rule(role="planner", match="Nothing yet: open the tree", answer=_answer(*edits), uses=uses)


def _followed(*edits: dict[str, Any]) -> Rule:
    return Rule(role="planner", match=r"^Node (?P<node>\d+): a gain.*# Options below node (?P<focus>\d+)", answer=_answer(*edits))


GOOD = [
    _opened(_insert(0, 64), _insert(0, 256, score=3)),
    Rule(
        role="planner",
        match="^Node 1: a gain.*# Options below node 1",
        answer=_answer(
            _insert(1, 128, score=9, reason="Larger gained."),
            {**EMPTY, "edit": "update", "node": 2, "score": 1, "gain": 1.1, "confidence": 0.8, "reason": "Less is left."},
        ),
    ),
    _followed(),
    NO_PLANS,
]


async def _run(folder: Path, rules: list[Rule]) -> tuple[Any, ScriptedServer]:
    with ScriptedServer(Scenario(rules=rules)) as server:
        services = asked_services(folder, server.url, SETTINGS)
        await execute(services, lambda event: None)
    return services, server


async def test_the_model_opens_and_edits_the_tree(tmp_path: Path) -> None:
    """What the model inserts is planned in the order of its scores, with its reasons, by its name; the trace says what it edited."""
    services, _ = await _run(tmp_path / "run", GOOD)
    plans = list(services.store.all("plan", Plan).values())
    assert [plan.action.parameters["BLOCK"] for plan in plans][:2] == [64, 128]
    assert (plans[1].rationale, plans[1].planner, plans[1].predicted_gain) == ("Larger gained.", "scripted", 1.5)
    assert "scripted edited the tree after node 1 had ended: insert 1" in considered(services)
    assert "update 2 (Less is left.)" in considered(services)


async def test_an_edit_costs_what_it_costs(tmp_path: Path) -> None:
    """Every call for an edit is in the run's record with its tokens, and in what the run has spent."""
    services, server = await _run(tmp_path / "run", GOOD)
    edits = calls_for(services, "edit ")
    assert len(edits) >= 2
    assert all(call.usage.output_tokens > 0 for call in edits)
    counted = sum(call.usage.input_tokens + call.usage.output_tokens for call in calls_for(services, ""))
    assert services.store.spent().tokens == counted
    assert server.count("planner") == len(calls_for(services, ""))


@pytest.mark.slow
async def test_a_resumed_run_asks_no_edit_twice(tmp_path: Path) -> None:
    """Cut short three times where an edit had just been made, a run asks what an undisturbed one asks, and pays for each once."""
    expected, undisturbed = await _run(tmp_path / "a/run", GOOD)
    with ScriptedServer(Scenario(rules=GOOD)) as server:
        resumed = await run_interrupted(tmp_path / "b/run", server, SETTINGS, 3)
    assert [e.body_hash for e in server.requests] == [e.body_hash for e in undisturbed.requests]
    assert resumed.store.all("plan", Plan) == expected.store.all("plan", Plan)
    assert resumed.store.all("tree_edits", TreeEdits) == expected.store.all("tree_edits", TreeEdits)


async def test_an_invalid_edit_is_mended(tmp_path: Path) -> None:
    """An insert below a node that is not there is sent back once with its fault, and the mended one is made."""
    services, server = await _run(
        tmp_path / "run", [_opened(_insert(7, 64), uses=1), Rule(match="cannot be made", answer=_answer(_insert(0, 64))), NO_PLANS]
    )
    assert "decisions are opened below node 0 only" in server.last_user(1)
    assert [edit.node for edit in services.store.all("tree_edits", TreeEdits)["edit open"].edits] == [0]


@pytest.mark.parametrize(
    ("edits", "fault"),
    [
        ([_insert(0, 99)], "this is not one of the options"),
        ([_insert(0, 64, score=70)], "its score cannot be 70"),
        ([_insert(0, 64, gain=None)], "its gain is missing"),
        ([{**EMPTY, "edit": "prune", "node": 0, "reason": "No."}], "node 0 is closed"),
        ([{**EMPTY, "edit": "split", "node": 0, "reason": "No."}], "no second kernel"),
        ([], "insert at least one"),
    ],
)
async def test_an_edit_that_stays_invalid_is_refused_and_the_rules_step_in(tmp_path: Path, edits: list[dict[str, Any]], fault: str) -> None:
    """Where no edit can be made, the rules open the tree, and the trace says why and what was refused."""
    stubborn = Rule(role="planner", match="open the tree|cannot be made", answer=_answer(*edits))
    services, _ = await _run(tmp_path / "run", [stubborn, _followed(), NO_PLANS])
    said = considered(services)
    assert fault in said
    assert "The built-in rules edited the tree to open it." in said
    assert services.store.all("plan", Plan)


async def test_a_server_that_fails_leaves_the_tree_to_the_rules(tmp_path: Path) -> None:
    """Without an answer the run goes on by the rules, and says so."""
    down = Rule(role="planner", match="# The tree of decisions", status=400, message="too long")
    services, _ = await _run(tmp_path / "run", [down, NO_PLANS])
    assert "The built-in rules edited" in considered(services)
    assert len(services.store.all("plan", Plan)) > 1


def test_edits_are_checked_one_after_the_other() -> None:
    """The fourth decision below one node is refused although each alone were valid; a split names the second kernel that was found."""
    actions = [Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK": size}) for size in (1, 2, 3, 4)]
    edits = [TreeEdit(edit="insert", node=TOP, action=one, score=5, gain=1.2, difficulty=2) for one in actions]
    check = tree_check(EditWish(name="e", parent=ROOT, focus=TOP, tree=WorldTree()), lambda action: "", must_open=True)
    kept, faults = check(edits)
    assert len(kept) == 3
    assert "3 open decisions already" in faults[0]
    ended = Ended(node=1, expected=1.0, measured=1.2, attempts=3, second="abc", second_gain=1.1)
    assert made(TreeEdit(edit="split", node=1), ended) != made(TreeEdit(edit="split", node=2), ended)
