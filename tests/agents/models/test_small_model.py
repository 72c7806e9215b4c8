"""A real model on a real server (tests/support/small_model.py): too small to write a kernel, large enough for all that surrounds one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

from agents import TeamSettings, build_team
from agents.models import (
    ChatModel,
    Findings,
    MemoryCalls,
    Message,
    ModelSettings,
    ModelUnavailable,
    Price,
    PriceTable,
    budget_guard,
    check_model,
)
from agents.models.chat import FINDINGS
from agents.team.fitting import fitted
from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from tests.agents.models.playing import Played
from tests.support.loop import TextPool, small_services
from tests.support.small_model import NAME, missing, served
from tools.records import Budget, Evaluation, EvaluationRequest, Profile

CONTEXT = 2048
PRICES = PriceTable({NAME: Price(input=100.0, cached_input=10.0, output=1000.0)})
RULES = "You are the planner of a test. " + " ".join(f"Rule {n}: a block of {n} is not wanted." for n in range(1, 9))
QUESTION = (Message(role="system", content=RULES), Message(role="user", content="Which block size, and are you sure?"))

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


class Pick(BaseModel):
    """A schema that such a model would hardly follow by itself."""

    block: Literal[64, 128]
    sure: bool


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve it once for all tests of this file."""
    with served(CONTEXT) as address:
        yield address


def settings(url: str, **fields: object) -> ModelSettings:
    """Ask as one must on a busy machine."""
    return ModelSettings.model_validate({"name": NAME, "base_url": url, "timeout_s": 200, "retries": 0, "temperature": 0, **fields})


async def test_an_answer_is_held_to_its_schema(url: str) -> None:
    """The first reply fits, word for word, though the model was told nothing of the form; its tokens are counted and priced."""
    chat = ChatModel(settings(url, max_output_tokens=64), prices=PRICES)
    answer = await chat.ask("planner", QUESTION, Pick)
    await chat.close()
    assert isinstance(answer.parsed, Pick)
    assert answer.notes == ()
    assert answer.usage.counted
    assert answer.usage.input_tokens > 100
    assert answer.cost_usd == pytest.approx(PRICES.cost(NAME, answer.usage))


async def test_a_prefix_that_was_asked_before_is_counted_as_cached(url: str) -> None:
    """The server keeps what it has read: the next question with the same beginning pays most of it at the lower price."""
    chat = ChatModel(settings(url, max_output_tokens=4), prices=PRICES)
    await chat.ask("planner", QUESTION)
    second = await chat.ask("planner", (*QUESTION[:1], Message(role="user", content="And why?")))
    await chat.close()
    used = second.usage
    assert used.cached_tokens > used.input_tokens / 2
    assert second.cost_usd == pytest.approx(
        ((used.input_tokens - used.cached_tokens) * 100 + used.cached_tokens * 10 + used.output_tokens * 1000) / 1e6
    )


async def test_a_reply_cut_off_is_asked_for_again_and_both_are_paid(url: str) -> None:
    """Six tokens hold no object: it is sent back once with what is wrong, and the complaint names the limit."""
    calls = MemoryCalls()
    chat = ChatModel(settings(url, max_output_tokens=6), calls, prices=PRICES)
    answer = await chat.ask("planner", QUESTION, Pick)
    await chat.close()
    assert (answer.parsed, answer.finish, len(calls)) == (None, "length", 2)
    assert "cut off at the output limit" in answer.complaint
    assert answer.usage.output_tokens == 12


async def test_a_prompt_over_the_context_is_one_line_and_no_lack_of_the_server(url: str) -> None:
    """The server's own refusal is passed on, and it is not blamed for lacking schemas."""
    calls = MemoryCalls()
    chat = ChatModel(settings(url), calls)
    with pytest.raises(ModelUnavailable, match=r"exceeds the available context size \(2048 tokens\)"):
        await chat.ask("planner", (Message(role="user", content="word " * 3000),), Pick)
    await chat.close()
    assert calls.get(FINDINGS, f"{NAME} at {url}", Findings) is None


class Halving(TextPool):
    """Judges any source right, and a kernel to take half of the reference's time."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Add the time that the text does not state."""
        return await super().evaluate(request.model_copy(update={"source": f"# time: 50\n{request.source}"}))


async def test_a_run_with_it_ends_with_the_built_in_coders_kernel(url: str, tmp_path: Path) -> None:
    """What it has no room for is not sent, what it says without evidence is not believed, and the built-in coder's kernel is delivered."""
    asked = TeamSettings(model=settings(url, max_output_tokens=16), roles={"profiler": "llm"})
    (model,) = asked.models()
    team, (said,) = fitted(asked, {model.model_dump_json(): (await check_model(model)).context})
    assert said.startswith("The server says that its model takes 2,048 tokens: prompts are shortened (coder ")
    run = RunSettings(target="h200", memory=False, team=team, tune=0, budget=Budget(evaluations=2, tokens=50_000))
    services = small_services(tmp_path / "run", run)
    services.pool = Halving(tmp_path / "evaluations.log")
    services.team = build_team(team, services.store, guard=budget_guard(run.budget, services.store.spent))
    played = Played(await execute(services, lambda event: None), services.store)
    assert "@triton.jit" in (tmp_path / "run/result/kernel.py").read_text()
    assert "The coder's prompt has at least" in played.said
    assert {call.role for call in played.calls} == {"profiler"}
    notes = [note for profile in played.store.all("profile", Profile).values() for note in profile.notes]
    assert any("could not be read: The answer was cut off at the output limit" in note for note in notes)
    paid = [call.usage for call in played.calls]
    assert played.store.spent().tokens == sum(used.input_tokens + used.output_tokens for used in paid)
    assert all(used.cached_tokens > used.input_tokens / 2 for used in paid[1:])
