"""Several models for a role."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import TeamSettings, team_settings
from agents.models import ChatModel, MemoryCalls, Message, ModelSettings, Price, PriceTable
from agents.models.ensemble import CHOICE, LATEST, SCORES, Arm, Choice, Ensemble, ModelScores
from tests.agents.conftest import Serve
from tests.agents.models.playing import EVERY, model_settings, play
from tests.support.scenarios import block_team
from tests.support.scripted_rules import Rule
from tools.errors import UserError

QUESTION = [Message(role="user", content="Pick a number.")]
PRICES = PriceTable({"cheap": Price(input=1, output=1), "dear": Price(input=100, output=100)})


def _ensemble(calls: MemoryCalls, url: str = "http://127.0.0.1:9/v1", weight: float = 0.5, seed: int = 0) -> Ensemble:
    models = [ChatModel(ModelSettings(name=n, base_url=url, retries=0, backoff_s=0.01), calls, prices=PRICES) for n in ("cheap", "dear")]
    return Ensemble(models, calls, PRICES, seed=seed, cost_weight=weight)


def _share(ensemble: Ensemble, name: str) -> float:
    return sum(ensemble.ranking("coder", str(n))[0][0].name == name for n in range(200)) / 200


def _scored(cheap: int, dear: int) -> MemoryCalls:
    calls = MemoryCalls()
    arms = {"cheap": Arm(tries=20, successes=cheap, usd=0.02), "dear": Arm(tries=20, successes=dear, usd=2.0)}
    calls.put(SCORES, LATEST, ModelScores(arms={"coder": arms}))
    return calls


def test_cost_and_success_are_weighed() -> None:
    """Equal success goes to the cheap model, success alone (weight 0) to the better one, and a useless cheap one is left."""
    assert _share(_ensemble(_scored(10, 10)), "cheap") > 0.95
    assert _share(_ensemble(_scored(5, 18), weight=0), "dear") > 0.95
    assert _share(_ensemble(_scored(0, 20)), "dear") > 0.5


def test_choices_follow_the_seed_and_the_question_only() -> None:
    """The same seed chooses the same for the same question, in whichever order questions come; another seed differs somewhere."""
    calls = _scored(10, 10)
    one, two, other = (_ensemble(calls, weight=0, seed=seed) for seed in (1, 1, 2))
    picks = {n: one.ranking("coder", str(n))[0][0].name for n in range(40)}
    assert {n: two.ranking("coder", str(n))[0][0].name for n in reversed(range(40))} == picks
    assert {n: other.ranking("coder", str(n))[0][0].name for n in range(40)} != picks
    assert set(picks.values()) == {"cheap", "dear"}


async def test_the_next_best_answers_where_one_cannot(serve: Serve) -> None:
    """A model that the server lacks is passed over; the choice and why are kept."""
    server = serve(Rule(answer="seven"), models=["dear"])
    calls = MemoryCalls()
    ensemble = _ensemble(calls, server.url, weight=5)
    answer = await ensemble.ask("coder", QUESTION, purpose="p")
    kept = calls.get(CHOICE, "coder p", Choice)
    assert (answer.model, answer.text) == ("dear", "seven")
    assert kept is not None
    assert kept.model == "dear"
    assert "has no model called 'cheap'" in kept.why
    await ensemble.close()


async def test_a_run_with_two_models_scores_them(tmp_path: Path, serve: Serve) -> None:
    """After a run each model's record is there by role, every choice has its reason, and a plan names the model that made it."""
    server = serve(*block_team((64, 128, 256)), models=["one", "two"])
    first, second = (model_settings(server, name=name) for name in ("one", "two"))
    played = await play(tmp_path / "run", TeamSettings(model=first, others=(second,), team="full", roles=EVERY))
    scores = played.store.get(SCORES, LATEST, ModelScores)
    assert played.block == "128"
    assert scores is not None
    assert sum(arm.tries for arm in scores.arms["coder"].values()) == 3
    assert sum(arm.successes for arm in scores.arms["coder"].values()) == 3
    asked = {(call.role, call.model) for call in played.calls}
    assert {(one.role, one.model) for one in played.store.all(CHOICE, Choice).values()} == asked


def test_words_for_models() -> None:
    """Models are read with their servers, settings go to all, to one role or to one model, and wrong words are refused."""
    made = team_settings(
        "a,b.1@http://b:1/v1",
        "http://a/v1",
        ["planner=llm:c@https://c/v1"],
        model_set=["timeout_s=1800", "b.1.retries=9", "repairer.temperature=0.7"],
    )
    assert [(m.name, m.base_url, m.timeout_s, m.retries) for m in made.models_of("coder")] == [
        ("a", "http://a/v1", 1800, 4),
        ("b.1", "http://b:1/v1", 1800, 9),
    ]
    assert [(m.name, m.base_url) for m in made.models_of("planner")] == [("c", "https://c/v1")]
    assert made.models_of("coder")[0].temperature_of("repairer") == 0.7
    for words, what in ((["speed=1"], "is no setting"), (["cook.retries=1"], "neither a role nor a model"), (["retries=many"], "wrong")):
        with pytest.raises(UserError, match=what):
            team_settings("a", model_set=words)
