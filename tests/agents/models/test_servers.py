"""Kinds of servers and limits: Responses, Azure, pace, budgets, the look before a run, what runs share."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from agents import ready_models, team_settings
from agents.models import BudgetReached, ChatModel, Message, ModelSettings, Price, PriceTable, Shared, budget_guard, check_model
from agents.team.fitting import MARGIN
from agents.team.ready import check_prices
from kernelwright.cli.app import app
from tests.agents.conftest import Ask, Serve
from tests.support.scripted_rules import Rule
from tests.support.scripted_server import ScriptedServer
from tools.errors import UserError
from tools.records import Budget, Spent

QUESTION = [Message(role="system", content="You are the planner of a test."), Message(role="user", content="Pick a number.")]


class Pick(BaseModel):
    """A schema to ask for."""

    number: int


async def test_responses(serve: Serve, model: Ask) -> None:
    """The Responses endpoint gets schema and limit under its own names, is told to keep nothing, and its usage counts."""
    server = serve(Rule(answer='{"number": 7}'))
    answer = await model(server, api="responses", seed=1).ask("planner", QUESTION, Pick)
    sent = server.requests[0].body
    assert answer.parsed == Pick(number=7)
    assert sent["text"]["format"]["type"] == "json_schema"
    assert (sent["max_output_tokens"], sent["store"]) == (16384, False)
    assert answer.usage.counted
    assert answer.usage.cached_tokens > 0 < answer.usage.reasoning_tokens


@pytest.mark.parametrize(("fault", "finish"), [("refusal", "refusal"), ("length", "length")])
async def test_responses_that_are_no_answers(serve: Serve, model: Ask, fault: str, finish: str) -> None:
    """A refusal and a cut-off reply are told apart on that endpoint too."""
    answer = await model(serve(Rule(answer="No.", fault=fault)), api="responses").ask("planner", QUESTION)
    assert (answer.finish, answer.text) == (finish, "No.")


async def test_a_model_on_responses_only_is_found_out_once(serve: Serve, model: Ask) -> None:
    """A model that the chat endpoint turns away is asked on the other one, and from then on at once."""
    server = serve(Rule(answer="x"), unsupported=["chat"])
    chat = model(server)
    first = await chat.ask("planner", QUESTION, purpose="a")
    await chat.ask("planner", QUESTION, purpose="b")
    assert "Responses endpoint only" in first.notes[0]
    assert [entry.status for entry in server.requests] == [404, 200, 200]


async def test_azure(serve: Serve, model: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure is asked by deployment and API version, with the key in its own header."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "right")
    server = serve(Rule(answer="x"), key="right")
    url = server.url.removesuffix("/v1")
    answer = await model(url, api="azure", api_version="2024-10-21").ask("planner", QUESTION)
    assert answer.text == "x"
    with pytest.raises(UserError, match="needs an API version"):
        await model(url, api="azure").ask("planner", QUESTION)


async def test_output_limit_under_either_name_or_none(serve: Serve, model: Ask) -> None:
    """A server that knows neither name of the output limit is sent none, and the answer says so."""
    server = serve(Rule(answer="x"), unsupported=["max_tokens", "max_completion_tokens"])
    answer = await model(server).ask("planner", QUESTION)
    assert not {"max_tokens", "max_completion_tokens"} & set(server.requests[-1].body)
    assert "left out" in answer.notes[-1]


async def test_requests_a_minute(serve: Serve, model: Ask) -> None:
    """Requests begin no faster than the limit allows: the fourth three gaps of 0.2 s after the first, however long answers take."""
    chat = model(serve(Rule(answer="x")), requests_per_minute=300)
    began = time.monotonic()
    await chat.ask("planner", QUESTION)
    await asyncio.gather(*(chat.ask("planner", QUESTION, purpose=str(n)) for n in range(3)))
    assert time.monotonic() - began >= 0.6


async def test_a_reply_is_cut_to_the_budget(serve: Serve) -> None:
    """A budget below one full reply shortens the reply; it does not forbid the call."""
    server = serve(Rule(answer="x"))
    chat = _with_budget(server, Budget(tokens=3000))
    answer = await chat.ask("planner", QUESTION)
    assert 2000 < server.requests[0].body["max_tokens"] < 3000
    assert "The budget left room" in answer.notes[0]
    await chat.close()


async def test_money_is_never_overspent(serve: Serve) -> None:
    """With a known price no call is made that could cost more than is left, and calls side by side are held together."""
    server = serve(Rule(answer="x", delay_s=0.05))
    chat = _with_budget(server, Budget(money_usd=0.02), PriceTable({"scripted": Price(input=1, output=10)}))
    await asyncio.gather(*(chat.ask("planner", QUESTION, purpose=str(n)) for n in range(3)))
    assert all(entry.body["max_tokens"] * 10 / 1e6 < 0.02 for entry in server.requests)
    broke = _with_budget(server, Budget(money_usd=0.005), PriceTable({"scripted": Price(input=1, output=10)}))
    with pytest.raises(BudgetReached, match="money_usd"):
        await broke.ask("planner", QUESTION)
    await chat.close()
    await broke.close()


def _with_budget(server: ScriptedServer, budget: Budget, prices: PriceTable | None = None) -> ChatModel:
    settings = ModelSettings(name="scripted", base_url=server.url)
    return ChatModel(settings, prices=prices, guard=budget_guard(budget, Spent))


async def test_the_look_before_a_run(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong key, an unknown model and a dead server are found before a run; a server that lists nothing is let pass, and that is said."""
    fine = serve()
    assert not (await check_model(ModelSettings(name="scripted", base_url=fine.url))).note
    with pytest.raises(UserError, match="Choose one of: scripted"):
        await check_model(ModelSettings(name="other", base_url=fine.url))
    with pytest.raises(UserError, match="needs a key"):
        await check_model(ModelSettings(name="scripted", base_url=serve(key="k").url))
    assert "shows at the first call" in (await check_model(ModelSettings(name="x", base_url=serve(lists_models=False).url))).note
    url = fine.url
    fine.stop()
    with pytest.raises(UserError, match="No server answers"):
        await check_model(ModelSettings(name="scripted", base_url=url))


@pytest.mark.parametrize(
    ("entry", "context"),
    [
        ({"meta": {"n_ctx": 8192, "n_ctx_train": 131072}}, 8192),
        ({"max_model_len": 32768}, 32768),
        ({"context_length": 128000, "context_window": None}, 128000),
        ({"meta": None}, 0),
    ],
    ids=["llama.cpp", "vLLM", "OpenRouter", "unknown"],
)
async def test_what_a_model_takes_is_read_from_the_list(serve: Serve, entry: dict[str, object], context: int) -> None:
    """Servers name the tokens of a prompt and its reply in their own words."""
    assert (await check_model(ModelSettings(name="scripted", base_url=serve(entry=entry).url))).context == context


def test_prompts_are_shortened_to_what_the_model_takes(serve: Serve) -> None:
    """With 8,192 tokens a third is for the reply and the rest for prompts, which is said; a large model changes nothing."""
    team = team_settings("scripted", serve(entry={"max_model_len": 8192}).url)
    ready = ready_models(team, Budget())
    frame = ready.settings.frame
    assert [model.max_output_tokens for model in ready.settings.models()] == [2730]
    assert frame.context("coder") == frame.context("repairer") == 8192 - 2730 - MARGIN
    assert "8,192 tokens" in ready.notes[0]
    large = team_settings("scripted", serve(entry={"max_model_len": 131072}).url)
    assert ready_models(large, Budget()) == (large, ())


def test_money_needs_prices(tmp_path: Path) -> None:
    """A limit of money for a model without a price is refused; a table of the user's own makes it possible."""
    unknown = team_settings("m", "http://127.0.0.1:9/v1")
    with pytest.raises(UserError, match="price of m is not known"):
        check_prices(unknown, Budget(money_usd=1))
    own = tmp_path / "own.json"
    own.write_text('{"provider": "me", "source": "x", "as_of": "2026-11-20", "models": {"m": {"input": 0, "output": 0}}}')
    check_prices(team_settings("m", "http://127.0.0.1:9/v1", prices=str(own)), Budget(money_usd=1))
    check_prices(unknown, Budget(tokens=1))


def test_nobody_is_asked_where_every_role_is_built_in() -> None:
    """Without a model there is nothing to look at."""
    assert ready_models(team_settings(), Budget()).notes == ()


async def test_runs_share_findings_and_answers(serve: Serve, tmp_path: Path) -> None:
    """What one run found out the next knows, and with the cache the next pays for no question asked before."""
    server = serve(Rule(answer='{"number": 7}'), unsupported=["json_schema"])
    settings = ModelSettings(name="scripted", base_url=server.url)
    for answers, asked in ((False, [400, 200]), (True, [400, 200, 200]), (True, [400, 200, 200])):
        shared = Shared(tmp_path / "models.db", answers=answers)
        chat = ChatModel(settings, shared=shared)
        answer = await chat.ask("planner", QUESTION, Pick)
        await chat.close()
        shared.close()
        assert answer.parsed == Pick(number=7)
        assert [entry.status for entry in server.requests] == asked
    assert answer.cached
    assert (answer.usage.input_tokens, answer.cost_usd) == (0, 0.0)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--base-url", "http://127.0.0.1:9/v1"], "No server answers at http://127.0.0.1:9/v1"),
        ([], "which needs a key"),
        (["--base-url", "http://127.0.0.1:9/v1", "--usd", "1"], "cannot be held"),
        (["--model-set", "speed=9"], "is no setting of a model"),
    ],
)
def test_optimize_refuses_before_a_run_is_begun(tmp_path: Path, words: list[str], what: str) -> None:
    """On the command line each of these ends at once, with nothing made."""
    done = CliRunner().invoke(app, ["optimize", "data/operators/softmax.py", "--model", "m", "--home", str(tmp_path), *words])
    assert isinstance(done.exception, UserError)
    assert what in str(done.exception)
    assert not (tmp_path / "runs").exists()
