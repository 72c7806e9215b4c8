"""What each failure of a server leads to."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.models import BudgetReached, ChatModel, MemoryCalls, Message, ModelSettings, ModelUnavailable, budget_guard
from agents.models.deadline import time_left
from agents.models.transport import SILENCES
from tests.agents.conftest import Ask, Serve
from tests.support.scripted_rules import Fault, Rule
from tools.errors import UserError
from tools.records import Budget, Spent

QUESTION = [Message(role="user", content="Pick a number.")]


async def test_refused_key_names_its_variable(serve: Serve, model: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """401 is the user's to mend, and the message names the variable, never the key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")
    with pytest.raises(UserError, match="environment variable OPENAI_API_KEY") as caught:
        await model(serve(key="another")).ask("planner", QUESTION)
    assert "secret" not in str(caught.value)


async def test_own_variable_goes_first(serve: Serve, model: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """KERNELWRIGHT_API_KEY goes before OPENAI_API_KEY."""
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    monkeypatch.setenv("KERNELWRIGHT_API_KEY", "right")
    assert (await model(serve(Rule(answer="x"), key="right")).ask("planner", QUESTION)).text == "x"


async def test_key_file(serve: Serve, model: Ask, tmp_path: Path) -> None:
    """A key can come from a file; a file without a key is an error that names it."""
    (tmp_path / "key").write_text("right\n")
    (tmp_path / "empty").write_text("\n")
    server = serve(Rule(answer="x"), key="right")
    assert (await model(server, key_file=str(tmp_path / "key")).ask("planner", QUESTION)).text == "x"
    with pytest.raises(UserError, match="empty does not hold one key"):
        await model(server, key_file=str(tmp_path / "empty")).ask("planner", QUESTION)


async def test_hosted_model_without_a_key(model: Ask) -> None:
    """The hosted service without a key is refused before any request."""
    with pytest.raises(UserError, match="needs a key"):
        await model("https://api.openai.com/v1").ask("planner", QUESTION)


async def test_server_down_names_the_url(model: Ask) -> None:
    """A refused connection names the base URL, at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(UserError, match=url):
            await model(url, retries=50, backoff_s=10).ask("planner", QUESTION)


async def test_unknown_model_lists_the_known(serve: Serve, model: Ask) -> None:
    """404 lists the server's models, or where it lists none, points at model and URL."""
    with pytest.raises(UserError, match="Choose one of: large, small"):
        await model(serve(models=["small", "large"])).ask("planner", QUESTION)
    with pytest.raises(UserError, match="Check --model and --base-url"):
        await model(serve(models=["small"], lists_models=False)).ask("planner", QUESTION)


async def test_rate_limit_is_waited_out(serve: Serve, model: Ask) -> None:
    """After 429 the wait is as long as Retry-After says, then the answer comes."""
    server = serve(Rule(status=429, retry_after="0.3", uses=2), Rule(answer="x"))
    answer = await model(server).ask("planner", QUESTION)
    assert answer.text == "x"
    assert answer.seconds >= 0.6
    assert server.count() == 3


async def test_empty_account_is_not_retried(serve: Serve, model: Ask) -> None:
    """A 429 that means an empty account is for the user to mend."""
    server = serve(Rule(status=429, code="insufficient_quota"))
    with pytest.raises(UserError, match="no quota left"):
        await model(server).ask("planner", QUESTION)
    assert server.count() == 1


@pytest.mark.parametrize("rule", [Rule(status=500), Rule(status=503), *(Rule(fault=f) for f in ("close", "garbage", "html"))])
async def test_passing_trouble_is_retried(serve: Serve, model: Ask, rule: Rule) -> None:
    """Server errors, lost connections and unreadable replies are retried; the next answer counts."""
    server = serve(rule.model_copy(update={"uses": 1}), Rule(answer="x"))
    assert (await model(server).ask("planner", QUESTION)).text == "x"
    assert server.count() == 2


async def test_lasting_trouble_is_a_record(serve: Serve, model: Ask) -> None:
    """Trouble that outlasts the retries is ModelUnavailable, with the number of tries and the reason."""
    server = serve(Rule(status=500, message="on fire"))
    with pytest.raises(ModelUnavailable, match=r"after 3 tries: it answers 500 \(on fire\)"):
        await model(server).ask("planner", QUESTION)
    assert server.count() == 3


async def test_failing_server_is_not_waited_for_again_and_again(serve: Serve, model: Ask) -> None:
    """After a request that failed for good the next is tried once; after an answer there are retries again."""
    server = serve(Rule(status=500, uses=4), Rule(answer="x", uses=1), Rule(status=500, uses=1), Rule(answer="y"))
    chat = model(server)
    for purpose, tried in (("a", 3), ("b", 4)):
        with pytest.raises(ModelUnavailable):
            await chat.ask("planner", QUESTION, purpose=purpose)
        assert server.count() == tried
    assert (await chat.ask("planner", QUESTION, purpose="c")).text == "x"
    assert (await chat.ask("planner", QUESTION, purpose="d")).text == "y"


@pytest.mark.parametrize("fault", ["hang", "trickle"])
async def test_hang_ends_at_the_time_limit(serve: Serve, model: Ask, fault: Fault) -> None:
    """A server that hangs, or sends a byte now and then, is left at the time limit; the request is abandoned, not leaked."""
    server = serve(Rule(fault=fault))
    with pytest.raises(ModelUnavailable, match=r"no reply within 0\.3 s"):
        await model(server, timeout_s=0.3, retries=0).ask("planner", QUESTION)
    for _ in range(100):
        if server.count(state="abandoned"):
            break
        await asyncio.sleep(0.02)
    assert server.count(state="abandoned") == 1


async def test_defaults_do_not_add_up(serve: Serve, model: Ask) -> None:
    """Many retries allowed, a silent server is tried twice a question, once the next, and then not asked again; each failure is counted."""
    server = serve(Rule(fault="hang"))
    calls = MemoryCalls()
    chat = model(server, calls, timeout_s=0.2, retries=9)
    for purpose in ("a", "b", "c", "d"):
        with pytest.raises(ModelUnavailable, match="not asked again" if purpose > "b" else r"no reply within 0\.2 s"):
            await chat.ask("planner", QUESTION, purpose=purpose)
    assert server.count() == 3
    assert ModelSettings(name="m").timeout_s * SILENCES <= 900


async def test_an_endless_reply_is_given_up(serve: Serve, model: Ask) -> None:
    """A reply beyond the limit is one failed call with one sentence, not tried again, and nothing of it is kept."""
    calls = MemoryCalls()
    server = serve(Rule(fault="endless"))
    with pytest.raises(ModelUnavailable, match=r"longer than 4\.2 MB"):
        await model(server, calls).ask("planner", QUESTION)
    assert server.count() == 1
    assert len(calls) == 0


async def test_a_call_in_flight_ends_with_the_wall_time(serve: Serve) -> None:
    """At the end of --minutes a call is cut off; the next is not begun; both are known while they last."""
    server = serve(Rule(fault="hang"))
    chat = ChatModel(ModelSettings(name="scripted", base_url=server.url), guard=budget_guard(Budget(wall_s=1.0), _clock()))
    asking = asyncio.create_task(chat.ask("planner", QUESTION))
    await asyncio.sleep(0.05)
    assert [call.role for call in chat.in_flight.values()] == ["planner"]
    with pytest.raises(BudgetReached, match="was cut off"):
        await asking
    with pytest.raises(BudgetReached, match="was not begun"):
        await chat.ask("planner", QUESTION, purpose="next")
    assert not chat.in_flight
    assert server.count() == 1
    await chat.close()


def _clock() -> Callable[[], Spent]:
    began = time.monotonic()
    return lambda: Spent(wall_s=time.monotonic() - began)


async def test_server_that_dies_later_is_unavailable(serve: Serve, model: Ask) -> None:
    """A server that answered before and is gone now is the machine's failure, retried, and not the user's."""
    server = serve(Rule(answer="x"))
    chat = model(server)
    await chat.ask("planner", QUESTION, purpose="before")
    server.stop()
    with pytest.raises(ModelUnavailable, match="connection was lost"):
        await chat.ask("planner", QUESTION, purpose="after")


async def test_request_too_long(serve: Serve, model: Ask) -> None:
    """A prompt over the model's context is not tried again without its schema."""
    server = serve(Rule(status=400, message="This model's maximum context length is 8192 tokens."))
    with pytest.raises(ModelUnavailable, match="maximum context length"):
        await model(server, temperature=0.1).ask("planner", QUESTION)
    assert server.count() == 1


@pytest.mark.parametrize(("wall_s", "left"), [(600.0, 480.0), (60.0, 35.0), (20.0, 10.0), (0.0, None)])
def test_time_is_kept_for_the_confirmation(wall_s: float, left: float | None) -> None:
    """A fifth, or of a short run what one takes, but never more than half; without a limit there is none."""
    assert time_left(Budget(wall_s=wall_s), Spent()) == left
    assert time_left(Budget(wall_s=wall_s), Spent(), confirming=True) == (wall_s or None)


def test_more_is_kept_where_evaluations_take_long() -> None:
    """Three times the longest one, as long as that is not more than half."""
    assert time_left(Budget(wall_s=300.0), Spent(), longest_s=30.0) == 210.0
    assert time_left(Budget(wall_s=300.0), Spent(), longest_s=90.0) == 150.0
