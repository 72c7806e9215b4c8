"""Evolution with a language model: what is shown of the archive, and that an edit stays within the marked parts of its parent."""

from __future__ import annotations

import json
import re
from pathlib import Path

from agents import AgentTeam, build_team, team_settings
from agents.coder.anchors import find_anchors, outside_change
from agents.coder.protocol import Refusal
from agents.profiler.builtin import BuiltinProfiler
from agents.reviewer.builtin import BuiltinReviewer
from graphs.optimize.execute import execute
from graphs.run.context import Services
from graphs.search.protocol import Ask
from tests.graphs.search.asked_runs import calls_for, search_settings
from tests.support.loop import small_services
from tests.support.scenarios import block_plan
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import ROOT, Candidate, Plan
from tools.tracing import RunStore

BLOCKS = (16, 32, 64, 128, 256)
SETTINGS = search_settings("evolution", 10, islands="1", top="1", diverse="1", crossover="0.5", elite="0", explore="0", exploit="1")


def _kernel(block: int, outside: str = "") -> str:
    """A kernel whose length, and so its cell, goes with its block."""
    body = "\n".join(f"    step_{i} = {i}" for i in range(block // 8))
    text = f"{outside}import torch\n\n\ndef exp(x):\n    # block: {block}\n{body}\n    return x\n"
    return f"```python\n{text}\n\nclass ModelNew(torch.nn.Module):\n    pass\n```"


def _rules(outside: str = "") -> list[Rule]:
    """One kernel after another; with `outside` every change of a parent also changes what is not marked."""
    plans = [Rule(role="planner", answer=block_plan(block), uses=2) for block in BLOCKS]
    plans.append(Rule(role="planner", answer='{"plans": []}'))
    coders = [
        Rule(role="coder", match=rf'"BLOCK": {block}\b.*{mark}', answer=_kernel(block, changed))
        for block in BLOCKS
        for mark, changed in (("is marked", outside), ("", ""))
    ]
    return [*plans, Rule(role="coder", match="That answer cannot be used", answer=_kernel(64, outside)), *coders]


async def _run(folder: Path, rules: list[Rule]) -> Services:
    store = RunStore.create(folder, {"run": folder.name, "created": "0"})
    with ScriptedServer(Scenario(rules=rules)) as server:
        made = build_team(team_settings("scripted", server.url, ["coder=llm"], team="full"), store)
        team = AgentTeam(planner=made.planner, coder=made.coder, profiler=BuiltinProfiler(), reviewer=BuiltinReviewer(), models=made.models)
        services = small_services(folder, SETTINGS, team=team, store=store)
        await execute(services, lambda event: None)
    return services


async def test_planner_and_coder_see_what_the_archive_names(tmp_path: Path) -> None:
    """Every program that an ask names is in the planner's prompt with figures and steps, and in the coder's with its source."""
    services = await _run(tmp_path / "run", _rules())
    asks = {name: ask for name, ask in services.store.all("asked", Ask).items() if ask.inspirations and ask.parent != ROOT}
    assert any(ask.diverse for ask in asks.values())
    assert any(ask.mates for ask in asks.values())
    plans = [call.messages[1].content for call in calls_for(services, "plan ")]
    for name, ask in asks.items():
        (written,) = [call.messages[1].content for call in calls_for(services, f"{name}/write") if len(call.messages) == 2]
        parts = {**dict.fromkeys(ask.diverse, "a program of another strategy"), **dict.fromkeys(ask.inspirations, "a leading program")}
        for shown, part in {**parts, **dict.fromkeys(ask.mates, "a second parent")}.items():
            assert f"{shown}, {part}: " in written
            assert services.store.source(shown).strip() in written
            assert any(
                re.search(rf"^- {shown}, {part}.*: [\d.]+ times as fast.* us, estimated.*; its steps: tiling", text, re.M) for text in plans
            )


async def test_an_edit_stays_within_the_marked_parts(tmp_path: Path) -> None:
    """A child of a program differs from it inside of the marked region only."""
    services = await _run(tmp_path / "run", _rules())
    children = [one for one in services.store.all("candidate", Candidate).values() if one.parent != ROOT]
    assert children
    for child in children:
        parent = services.store.source(child.parent)
        anchors = find_anchors(parent, child.action.region)
        assert anchors
        assert outside_change(parent, anchors, child.source) == ""


async def test_an_edit_outside_of_the_marks_is_refused(tmp_path: Path) -> None:
    """A model that also changes an import is told, and where it does so again the plan is refused: no such candidate is ever judged."""
    services = await _run(tmp_path / "run", _rules(outside="import os\n"))
    refused = services.store.all("refusal", Refusal).values()
    assert any("changes what lies outside of the marked parts" in one.reason for one in refused)
    assert not [one for one in services.store.all("candidate", Candidate).values() if "import os" in one.source]
    asked = [json.dumps(call.messages[-1].content) for call in calls_for(services, "") if call.purpose.endswith("/write, again")]
    assert all("cannot be used" in text for text in asked)
    assert asked
    assert services.store.all("plan", Plan)
