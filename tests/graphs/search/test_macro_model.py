"""The language-model policy of macro thinking: token probabilities where the server gives them, a ranking otherwise."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from agents.models import ChatModel, Message, ModelSettings, Recording
from agents.models.calls import Findings
from agents.planner.weigh import Weights, spread
from benchmarks.search.simulator import Simulation
from graphs.optimize.execute import execute
from graphs.run.context import Services
from graphs.search.protocol import SearchSettings
from tests.graphs.search.asked_runs import asked_services, calls_for, considered, run_interrupted, search_settings
from tests.graphs.search.synthetic import easy_landscape
from tests.support.loop import small_services
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import Budget, Plan

SETTINGS = search_settings("macro", 5, policy="model", temperature="1")
WORDS = {"said": "Answer with its letter alone", "ranked": "Rank the choices"}
SURE = Rule(match=WORDS["said"], answer="A", logprobs={"A": math.log(0.6), " B": math.log(0.2), "B": math.log(0.1), "the": -9.0})
SILENT = Rule(match=WORDS["said"], answer="A")
RANKED = Rule(match=WORDS["ranked"], answer=json.dumps({"ranking": ["B", "A", "Z"]}))


async def _run(folder: Path, scenario: Scenario) -> tuple[Services, ScriptedServer]:
    with ScriptedServer(scenario) as server:
        services = asked_services(folder, server.url, SETTINGS)
        await execute(services, lambda event: None)
    return services, server


def _weights(services: Services) -> list[Weights]:
    return list(services.store.all("weights", Weights).values())


async def test_choices_are_weighed_by_log_probabilities(tmp_path: Path) -> None:
    """Each choice has the log-probability of its letter, white space apart; the server is asked for nothing else, and the trace says so."""
    services, server = await _run(tmp_path / "run", Scenario(rules=[SURE]))
    later = next(one for one in _weights(services) if len(one.scores) == 2)
    assert later.by == "log-probabilities"
    assert [round(math.exp(score), 3) for score in later.scores.values()] == [0.6, 0.3]
    assert next(iter(later.scores)) == "stop"
    assert all(entry.body["logprobs"] is True for entry in server.requests)
    assert all(entry.body["top_logprobs"] == 20 for entry in server.requests)
    assert "scripted weighed 2 choices by log-probabilities" in considered(services)


async def test_impossible_alternatives_are_read(tmp_path: Path) -> None:
    """Hosted servers write -9999 for tokens that cannot come: such a letter has next to no chance, and nothing breaks."""
    rule = Rule(match=WORDS["said"], answer="A", logprobs={"A": -0.0001, "B": -9999.0, " B": -9999.0})
    services, _ = await _run(tmp_path / "run", Scenario(rules=[rule]))
    found = _weights(services)
    assert {one.by for one in found} == {"log-probabilities"}
    assert all(min(one.scores.values()) < -9000 for one in found)


async def test_the_draw_follows_the_model(tmp_path: Path) -> None:
    """A model that is sure to stop ends every episode after its first step; one that is sure to go on never does."""
    ends = []
    for letter in "AB":
        sure = Rule(match=WORDS["said"], answer=letter, logprobs={letter: -0.0001, "AB".replace(letter, ""): -12.0})
        services, _ = await _run(tmp_path / letter, Scenario(rules=[sure]))
        last = [span.output for span in services.store.spans() if span.node == "recall"][-1]
        assert last is not None
        state = json.loads(last)["search"]
        ends.append(json.loads(state)["own"]["episodes"])
    assert ends[0] > ends[1] == 1


@pytest.mark.parametrize("unsupported", [False, True])
async def test_a_server_without_log_probabilities_is_asked_for_a_ranking(tmp_path: Path, unsupported: bool) -> None:
    """Whether it refuses or ignores the wish, it is asked once for them and from then on for rankings, and the trace says why."""
    scenario = Scenario(rules=[SILENT, RANKED], unsupported=["logprobs"] if unsupported else [])
    services, server = await _run(tmp_path / "run", scenario)
    weights = _weights(services)
    assert {one.by for one in weights} == {"ranking"}
    assert next(one for one in weights if len(one.scores) == 2).scores == {"stop": -0.5, "tiling r0": 0.0}
    wanted = [e for e in server.requests if WORDS["said"] in str(e.body["messages"][-1]["content"])]
    assert len(wanted) == 1 + unsupported
    found = services.store.all("findings", Findings)
    assert any("logprobs" in one.lacks for one in found.values())
    assert "by ranking (its server gives no log-probabilities)" in considered(services)


async def test_nothing_readable_leaves_it_to_the_ratings(tmp_path: Path) -> None:
    """Neither probabilities nor a ranking: the planner's ratings weigh, the trace says why, and the run goes on."""
    services, _ = await _run(tmp_path / "run", Scenario(rules=[SILENT, Rule(match=WORDS["ranked"], answer='{"ranking": []}')]))
    assert "no ranking could be read (it named no letter): its ratings weigh the choices." in considered(services)
    assert len(services.store.all("plan", Plan)) >= 5


async def test_a_resumed_run_weighs_nothing_twice(tmp_path: Path) -> None:
    """Cut short three times after a weighing, a run sends what an undisturbed one sends, and accounts for each call once."""
    expected, undisturbed = await _run(tmp_path / "a/run", Scenario(rules=[SURE]))
    with ScriptedServer(Scenario(rules=[SURE])) as server:
        resumed = await run_interrupted(tmp_path / "b/run", server, SETTINGS, 3)
    assert [e.body_hash for e in server.requests] == [e.body_hash for e in undisturbed.requests]
    assert resumed.store.all("plan", Plan) == expected.store.all("plan", Plan)
    assert resumed.store.spent().tokens == sum(c.usage.input_tokens + c.usage.output_tokens for c in calls_for(resumed, "weigh "))


async def test_without_a_model_the_ratings_stand_in_and_that_is_said_once(tmp_path: Path) -> None:
    """A planner without token probabilities leaves the draw to its ratings."""
    settings = SETTINGS.model_copy(update={"budget": Budget(evaluations=5)})
    services = small_services(tmp_path / "run", settings)
    await execute(services, lambda event: None)
    assert considered(services) == "The planner first-option has no token probabilities: its ratings weigh the choices."


async def test_a_repeated_run_whose_record_has_no_odds_goes_on_to_the_ranking() -> None:
    """Where the recorded run knew already that its server gives none, its repetition gets an empty answer, and no error."""
    model = ChatModel(ModelSettings(name="scripted"), recording=Recording({}, {}))
    answer = await model.ask_odds("planner", (Message(role="user", content="Which?"),), purpose="weigh")
    assert (answer.text, answer.odds) == ("", {})


def test_in_a_simulation_the_ratings_stand_in() -> None:
    """Where nobody is there to ask, `model` draws what `planner` draws."""
    curves = [
        Simulation(easy_landscape(), "macro", SearchSettings(seed=1, options={"policy": name})).run(12) for name in ("model", "planner")
    ]
    assert curves[0] == curves[1]


def test_what_no_alternative_names_shares_the_rest() -> None:
    """Letters that are not among the alternatives get equal shares of what is left, never more than the unlikeliest alternative."""
    odds = spread({"A": math.log(0.5), "x": math.log(0.3)}, "ABC")
    assert math.exp(odds["B"]) == math.exp(odds["C"]) == pytest.approx(0.1)
    assert spread({"x": -0.1}, "AB") == {}
