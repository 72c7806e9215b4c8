"""Asking a model over real HTTP: answers, schemas, fallbacks, the store, costs."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from agents.models import BudgetReached, ChatModel, MemoryCalls, Message, ModelSettings, Price, PriceTable, budget_guard
from tests.agents.conftest import Ask, Serve
from tests.support.scripted_rules import Rule
from tools.records import Budget, Spent

QUESTION = [Message(role="system", content="You are the planner of a test."), Message(role="user", content="Pick a number.")]


class Pick(BaseModel):
    """A schema to ask for."""

    number: int
    why: str | None = None


async def test_answers(serve: Serve, model: Ask) -> None:
    """A plain question gives the text, the server's token counts and the time it took."""
    server = serve(Rule(role="planner", answer="Seven, because it is odd."))
    answer = await model(server).ask("planner", QUESTION)
    assert answer.text == "Seven, because it is odd."
    assert answer.usage.counted
    assert answer.usage.input_tokens > answer.usage.cached_tokens > 0
    assert answer.usage.output_tokens > answer.usage.reasoning_tokens > 0
    assert answer.seconds > 0
    assert not answer.cached


async def test_structured(serve: Serve, model: Ask) -> None:
    """A server that takes schemas is asked for one in the strict form, and the answer comes back parsed."""
    server = serve(Rule(answer='{"number": 7, "why": null}'))
    answer = await model(server).ask("planner", QUESTION, Pick)
    assert answer.parsed == Pick(number=7)
    asked = server.requests[0].body["response_format"]["json_schema"]
    assert asked["strict"] is True
    assert asked["schema"]["required"] == ["number", "why"]
    assert asked["schema"]["additionalProperties"] is False


@pytest.mark.parametrize("vague", [False, True])
async def test_schema_fallback_is_found_once(serve: Serve, model: Ask, vague: bool) -> None:
    """A server without schemas is found out by one refusal; the answer says so, and later calls do not try again."""
    server = serve(Rule(answer='Here you are:\n```json\n{"number": 7}\n```\nDone.'), unsupported=["json_schema"], vague=vague)
    chat = model(server)
    first = await chat.ask("planner", QUESTION, Pick)
    second = await chat.ask("planner", QUESTION, Pick, purpose="again")
    assert first.parsed == second.parsed == Pick(number=7)
    assert "takes no JSON schema" in first.notes[0]
    assert "takes no JSON schema" in second.notes[0]
    assert [e.status for e in server.requests] == [400, 200, 200]
    assert "```json" in server.last_user()


async def test_every_feature_can_lack(serve: Serve, model: Ask) -> None:
    """Schema, temperature, seed and system message are each left out of what the server is sent, and each is noted."""
    server = serve(Rule(answer='{"number": 1}'), unsupported=["json_schema", "temperature", "seed", "system_role", "max_tokens"])
    answer = await model(server, temperature=0.2, seed=1).ask("planner", QUESTION, Pick)
    sent = server.requests[-1].body
    assert answer.parsed == Pick(number=1)
    assert len(answer.notes) == 5
    assert not {"temperature", "seed", "response_format", "max_tokens"} & set(sent)
    assert sent["max_completion_tokens"] == 16384
    assert [m["role"] for m in sent["messages"]] == ["user"]
    assert sent["messages"][0]["content"].startswith("You are the planner of a test.")


async def test_invalid_answer_is_sent_back(serve: Serve, model: Ask) -> None:
    """An answer that does not fit is sent back once with what is wrong; both calls count."""
    server = serve(Rule(answer='{"number": "many"}', uses=1), Rule(match="number: Input should be a valid integer", answer='{"number": 2}'))
    answer = await model(server).ask("planner", QUESTION, Pick)
    assert answer.parsed == Pick(number=2)
    assert "did not fit" in answer.notes[0]
    assert answer.usage.output_tokens == sum(max(1, n // 4) for n in (18, 13))


async def test_two_invalid_answers_are_a_complaint(serve: Serve, model: Ask) -> None:
    """Two answers that do not fit leave `parsed` empty and say what is wrong; nothing is raised."""
    server = serve(Rule(answer="I would rather talk about the weather."))
    answer = await model(server).ask("planner", QUESTION, Pick)
    assert answer.parsed is None
    assert "no valid JSON object" in answer.complaint
    assert server.count() == 2


async def test_refusal_is_not_argued_with(serve: Serve, model: Ask) -> None:
    """A model that declines is not asked again."""
    server = serve(Rule(answer="I cannot help with that.", fault="refusal"))
    answer = await model(server).ask("planner", QUESTION, Pick)
    assert answer.finish == "refusal"
    assert "declined" in answer.complaint
    assert server.count() == 1


async def test_cut_off_answer_says_so(serve: Serve, model: Ask) -> None:
    """An answer cut off at the output limit keeps its text and its cost, and the complaint names the limit."""
    server = serve(Rule(answer='{"number": 1', fault="length"))
    answer = await model(server).ask("planner", QUESTION, Pick)
    assert answer.finish == "length"
    assert "cut off" in answer.complaint
    assert answer.usage.output_tokens > 0


async def test_repeated_question_costs_nothing(serve: Serve, model: Ask) -> None:
    """A question asked before, by another process of the same run, is answered from the store without a request."""
    calls = MemoryCalls()
    server = serve(Rule(answer='{"number": 7}'), unsupported=["json_schema"])
    first = await model(server, calls).ask("planner", QUESTION, Pick, purpose="plan 1")
    made = server.count()
    second = await model(server, calls).ask("planner", QUESTION, Pick, purpose="plan 1")
    assert second.parsed == first.parsed
    assert second.cached
    assert not first.cached
    assert second.key == first.key
    assert second.usage == first.usage
    assert server.count() == made


async def test_purpose_and_settings_make_another_call(serve: Serve, model: Ask) -> None:
    """Another purpose, temperature or role is another call."""
    calls = MemoryCalls()
    server = serve(Rule(answer="x"))
    await model(server, calls).ask("planner", QUESTION, purpose="a")
    await model(server, calls).ask("planner", QUESTION, purpose="b")
    await model(server, calls, temperature=0.5).ask("planner", QUESTION, purpose="a")
    await model(server, calls).ask("coder", QUESTION, purpose="a")
    assert server.count() == 4


async def test_known_price(serve: Serve, model: Ask) -> None:
    """Cost is fresh input, cached input and output at their own prices; a model without a price has none."""
    server = serve(Rule(answer="x" * 400))
    prices = PriceTable({"scripted": Price(input=2.0, cached_input=1.0, output=10.0)})
    priced = await model(server, prices=prices).ask("planner", QUESTION)
    unpriced = await model(server).ask("planner", QUESTION)
    used = priced.usage
    assert priced.cost_usd == pytest.approx(((used.input_tokens - used.cached_tokens) * 2 + used.cached_tokens + 100 * 10) / 1e6)
    assert unpriced.cost_usd is None


async def test_uncounted_usage_has_no_cost(serve: Serve, model: Ask) -> None:
    """Where the server counts no tokens, the cost is unknown rather than zero."""
    server = serve(Rule(answer="x", fault="no_usage"))
    answer = await model(server, prices=PriceTable({"scripted": Price(input=1, output=1)})).ask("planner", QUESTION)
    assert not answer.usage.counted
    assert answer.cost_usd is None


async def test_budget_is_checked_before_the_call(serve: Serve) -> None:
    """A call that could exceed the tokens left is not made; one that cannot is."""
    server = serve(Rule(answer="x"))
    settings = ModelSettings(name="scripted", base_url=server.url, max_output_tokens=100)
    guard = budget_guard(Budget(tokens=1000), lambda: Spent(tokens=used))
    chat = ChatModel(settings, guard=guard)
    used = 950
    with pytest.raises(BudgetReached, match="budget of tokens"):
        await chat.ask("planner", QUESTION)
    assert server.count() == 0
    used = 800
    assert (await chat.ask("planner", QUESTION)).text == "x"
    await chat.close()
