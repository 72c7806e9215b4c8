"""Teams in the real graph, on the small landscape of tests/support/loop.py: what a model designs is kept, whatever the search method."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents import TeamSettings
from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.planner.solo import SoloPlanner
from agents.prompting.frame import Frame, read_contexts
from agents.records.standing import Attempt
from graphs.optimize.execute import execute
from graphs.run.assembly import change_contexts
from graphs.run.settings import RunSettings
from graphs.run.standing import ATTEMPT as KEPT
from graphs.search import METHODS
from graphs.search.protocol import SearchSettings
from tests.agents.models.playing import Played, model_settings, play
from tests.support.breadth import unlike
from tests.support.loop import BlockCoder, small_services, small_team
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import ATTEMPT, IDEA, ROOT, Action, ActionKind, Budget, Candidate, HardwareSheet, Plan, Problem
from tools.tracing import RunStore

ALIKE = {"bandit", "greedy", "tree", "evolution"}
"""Methods that run no line for a design which another one does not run: tried by `make test-all`."""


class Designer(BlockCoder):
    """A coder of blocks that also writes designs: the second is right and the fastest of all, the others are wrong for good."""

    free = True

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """Nothing can be built on a design."""
        return () if parent and "# design" in parent.source else await super().options(problem, parent, sheet)

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Write a design, or a block."""
        if task.plan.action.kind is not ActionKind.REWRITE:
            return await super().write(task)
        number = task.plan.action.parameters[ATTEMPT]
        told = "# saw: " + "; ".join(one.words for one in task.standing.attempts if one.action.kind is ActionKind.REWRITE)
        verdict = "PASS" if number == 2 else "WRONG"
        return Draft(source=f"# time: 20\n# verdict: {verdict}\n# design: {number}\n{told}\n", idea=f"design {number}")


@pytest.mark.parametrize("name", unlike(sorted(METHODS), ALIKE))
async def test_a_design_is_delivered_under_every_search_method(tmp_path: Path, name: str) -> None:
    """Solo under any method: the model's right design, the fastest there is, is delivered and not lost."""
    search = SearchSettings(seed=2, patience=0)
    settings = RunSettings(target="h200", memory=False, search=name, repairs=0, budget=Budget(evaluations=24), search_settings=search)
    built = small_team(Designer())
    services = small_services(tmp_path / "run", settings, team=built.__class__(**{**vars(built), "planner": SoloPlanner()}))
    delivery = await execute(services, lambda event: None)
    assert services.candidate(delivery.candidate).idea == "design 2"


def _file(time: float, verdict: str = "PASS", idea: str = "") -> str:
    head = f"Idea: {idea}\n" if idea else ""
    return f"{head}```python\n# time: {time}\n# verdict: {verdict}\nclass ModelNew:\n    pass\n```"


async def _played(folder: Path, *rules: Rule, **team: object) -> Played:
    with ScriptedServer(Scenario(rules=list(rules))) as server:
        given = {"model": model_settings(server, retries=0), "roles": {"coder": "llm"}, **team}
        played = await play(folder, TeamSettings.model_validate(given), budget=Budget(evaluations=3))
        played.asked = [str(request.body["messages"][-1]["content"]) for request in server.requests]  # type: ignore[attr-defined]
    return played


async def test_one_agent_sees_what_came_of_its_designs(tmp_path: Path) -> None:
    """Solo asks for nothing but designs; the second is told the first one's idea, time and why, and the fastest is delivered."""
    first, second = (Rule(role="coder", answer=_file(us, idea=idea), uses=1) for us, idea in ((50, "one pass."), (26, "chunks.")))
    played = await _played(tmp_path / "run", first, second, Rule(role="coder", answer=_file(90, idea="slow.")))
    assert played.store.candidate(played.delivery.candidate).idea == "chunks."  # type: ignore[union-attr]
    assert {call.role for call in played.calls} == {"coder"}
    asked: list[str] = played.asked  # type: ignore[attr-defined]
    assert "Nothing was tried yet." in asked[0]
    assert "one pass." in asked[1] and "50 us" in asked[1] and "eager: 100 us" in asked[1]  # noqa: PT018 - one sentence
    assert [one.idea for one in played.store.all(KEPT, Attempt).values()] == ["one pass.", "chunks.", "slow."]


async def test_a_pair_has_a_second_look(tmp_path: Path) -> None:
    """In a pair the model reviews too, and what it has against a design is told with the next."""
    remarks = json.dumps({"concerns": ["Rows of one element are not masked."], "checks": [], "lesson": "x"})
    rules = [Rule(role="coder", answer=_file(50, idea="one."), uses=1), Rule(role="coder", answer=_file(26, idea="two."))]
    played = await _played(tmp_path / "run", Rule(role="reviewer", answer=remarks), *rules, team="pair")
    assert {call.role for call in played.calls} == {"coder", "reviewer"}
    asked: list[str] = played.asked  # type: ignore[attr-defined]
    assert any("Write the fastest" in text and "Rows of one element are not masked." in text for text in asked)


async def test_two_free_designs_of_one_parent_are_two_plans(tmp_path: Path) -> None:
    """In a full team the planner states designs; a second, different one for the same parent is no repetition, the same one is."""

    def design(idea: str) -> Rule:
        fields = {"kind": "rewrite", "region": "anything", "rationale": "r", "predicted_gain": None, "strategies": []}
        plan = {**fields, "parameters": [{"name": IDEA, "value": idea}]}
        return Rule(role="planner", answer=json.dumps({"plans": [plan]}), uses=1)

    plans = [design("a chunked scan"), design("a  chunked scan"), design("one program a row")]
    first = Rule(role="coder", match=r"by this design:\n\S+ \w+ design\na chunked scan", answer=_file(50, "WRONG"))
    wrong = [first, Rule(role="repairer", answer="I cannot.")]
    coders = [*wrong, Rule(role="coder", answer=_file(26))]
    played = await _played(tmp_path / "run", *plans, *coders, Rule(role="planner", answer='{"plans": []}'), team="full")
    made = [one for one in played.store.all("plan", Plan).values() if one.parent == ROOT]
    assert [one.action.parameters[IDEA] for one in made] == ["a chunked scan", "one program a row"]
    assert {one.source.splitlines()[0] for one in played.store.all("candidate", Candidate).values()} == {"# time: 50", "# time: 26"}


def test_a_run_goes_on_with_longer_prompts(tmp_path: Path) -> None:
    """The length that a refusal names can be given to a run that has begun; what else was set stays."""
    frame = Frame(scratch=True, contexts={"planner": 9000})
    store = RunStore.create(tmp_path / "run", {"settings": RunSettings(team=TeamSettings(frame=frame)).model_dump_json()})
    change_contexts(store, read_contexts(["coder=40000"]))
    after = RunSettings.model_validate_json(store.meta("settings")).team.frame
    assert after == Frame(scratch=True, contexts={"planner": 9000, "coder": 40_000})
