"""A model that compiles, checks and times before it hands a kernel in, over real HTTP."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from agents.coder.builtin import BuiltinCoder
from agents.coder.llm import LLMCoder
from agents.coder.protocol import Draft
from agents.models import MemoryCalls
from agents.prompting.frame import Frame
from agents.samples import case as samples
from agents.samples.sources import KERNEL
from agents.writing.session import NOTHING, SHOWN, SPENT, Session
from agents.writing.tools import TOOLS
from tests.agents.conftest import Ask, Serve
from tests.support.scripted_rules import Rule
from tests.support.scripted_server import ScriptedServer
from tools.records import Action, ActionKind, Plan

GOOD = f"```python\n{KERNEL}```"
SOURCE = json.dumps({"source": KERNEL})
AGAIN = json.dumps({"source": ""})


class Bench:
    """Answers with the tool's name and how long the source is."""

    def __init__(self) -> None:
        """Keep what was called."""
        self.used: list[tuple[str, str]] = []

    async def use(self, tool: str, given: str, plan: Plan, purpose: str) -> str:
        """Tell."""
        self.used.append((tool, given))
        return f"{tool}: {len(given)} characters"


def coder(model: Ask, server: ScriptedServer, bench: Bench, calls: int = 4, store: MemoryCalls | None = None) -> LLMCoder:
    """A coder with tools."""
    made = LLMCoder(model(server, store), BuiltinCoder(), Frame(tools=calls))
    made.bench = bench
    return made


def turns(server: ScriptedServer, number: int = -1) -> list[dict[str, object]]:
    """The conversation of a request."""
    found: list[dict[str, object]] = server.requests[number].body["messages"]
    return found


async def test_tools_are_called_before_the_kernel_is_handed_in(serve: Serve, model: Ask) -> None:
    """What a tool says comes back to the model, an empty source means the last one, and what was handed in is the draft."""
    server, bench = serve(
        Rule(calls=[("compile", SOURCE)], uses=1), Rule(calls=[("check", AGAIN), ("time", AGAIN)], uses=1), Rule(calls=[("submit", AGAIN)])
    ), Bench()  # fmt: skip
    draft = await coder(model, server, bench).write(samples.task(samples.candidate()))
    assert isinstance(draft, Draft)
    assert draft.source == KERNEL
    assert "compile 1, check 1, time 1" in draft.notes[-1]
    assert bench.used == [("compile", KERNEL), ("check", KERNEL), ("time", KERNEL)]
    offered = [one["function"]["name"] for one in server.requests[0].body["tools"]]
    assert offered == [one.name for one in TOOLS]
    last = turns(server)
    assert [one["role"] for one in last[2:]] == ["assistant", "tool", "assistant", "tool", "tool"]
    assert str(last[3]["content"]).startswith(f"compile: {len(KERNEL)} characters\n(3 calls of tools left.)")
    assert "4 times in all" in str(last[0]["content"])


async def test_a_plain_answer_needs_no_tool(serve: Serve, model: Ask) -> None:
    """A model that answers with a file at once is taken at its word."""
    server = serve(Rule(answer=GOOD))
    draft = await coder(model, server, Bench()).write(samples.task(samples.candidate()))
    assert isinstance(draft, Draft)
    assert (draft.source, draft.notes, server.count()) == (KERNEL, (), 1)


async def test_calls_come_to_an_end(serve: Serve, model: Ask) -> None:
    """After the last call that is allowed no more may be made, and the answer is asked for."""
    server, bench = serve(Rule(answer=GOOD, calls=[("compile", SOURCE)])), Bench()
    draft = await coder(model, server, bench, calls=2).write(samples.task(samples.candidate()))
    assert isinstance(draft, Draft)
    assert draft.source == KERNEL
    assert len(bench.used) == 2
    assert [one.body["tool_choice"] for one in server.requests] == ["auto", "auto", "none"]


async def test_a_server_without_tools_is_asked_without(serve: Serve, model: Ask) -> None:
    """One clear line says that the server takes none, and the kernel is written all the same; it is not asked again with tools."""
    server = serve(Rule(answer=GOOD), unsupported=["tools"])
    writer = coder(model, server, Bench())
    for _ in range(2):
        draft = await writer.write(samples.task(samples.candidate()))
        assert isinstance(draft, Draft)
        assert draft.notes == ("The server takes no tools for this model: it was asked to answer without them.",)
    assert ["tools" in one.body for one in server.requests] == [True, False]


async def test_a_turn_with_tools_is_answered_from_the_store(serve: Serve, model: Ask) -> None:
    """Asked again, no call is sent, and the conversation goes the same way."""
    server, store = serve(Rule(calls=[("compile", SOURCE)], uses=1), Rule(calls=[("submit", AGAIN)])), MemoryCalls()
    drafts = [await coder(model, server, Bench(), store=store).write(samples.task(samples.candidate())) for _ in range(2)]
    assert drafts[0] == drafts[1]
    assert server.count() == 2


@pytest.mark.parametrize("call", [("unheard_of", SOURCE), ("compile", "{broken"), ("check", '{"other": 1}')])
async def test_a_call_that_cannot_be_carried_out_is_told(serve: Serve, model: Ask, call: tuple[str, str]) -> None:
    """A tool that there is not, and arguments that are none, are answered in words; the turn goes on."""
    server, bench = serve(Rule(calls=[call], uses=1), Rule(answer=GOOD)), Bench()
    draft = await coder(model, server, bench).write(samples.task(samples.candidate()))
    assert isinstance(draft, Draft)
    assert turns(server)[-1]["role"] == "tool"
    assert bench.used == []


async def test_calls_of_one_answer_are_carried_out_in_turn() -> None:
    """The second call of an answer begins when the first has ended, and its empty source is the first one's."""
    log: list[str] = []

    class Slow:
        async def use(self, tool: str, given: str, plan: Plan, purpose: str) -> str:
            log.append(f"{tool} {given.strip()} begins")
            await asyncio.sleep(0.01)
            log.append(f"{tool} ends")
            return ""

    session = Session(Slow(), samples.plan(), "p", 4)
    await asyncio.gather(session.call("time", "x = 1"), session.call("profile", ""))
    assert log == ["time x = 1 begins", "time ends", "profile x = 1 begins", "profile ends"]


async def test_a_session_counts_and_cuts() -> None:
    """Without a source there is nothing to do, a long answer is cut, handing in is always possible, and the count is told."""

    class Talkative:
        async def use(self, tool: str, given: str, plan: Plan, purpose: str) -> str:
            return "x" * 2 * SHOWN

    session = Session(Talkative(), samples.plan(), "p", 1)
    assert await session.call("compile", "") == NOTHING
    assert len(await session.call("memory", None)) < SHOWN + 100
    assert await session.call("compile", "a = 1") == SPENT
    assert await session.call("submit", "") == "Handed in."
    assert session.submitted == "a = 1\n"
    assert session.note.endswith("memory 1.")


async def test_the_idea_of_a_design_is_kept_where_its_kernel_is_handed_in(serve: Serve, model: Ask) -> None:
    """What a model writes beside its calls counts: the line that states the design."""
    server = serve(Rule(answer="Idea: two rows a program.", calls=[("compile", SOURCE)], uses=1), Rule(calls=[("submit", AGAIN)]))
    design = Action(kind=ActionKind.REWRITE, region="forward", parameters={"attempt": 1})
    draft = await coder(model, server, Bench()).write(samples.task(action=design))
    assert isinstance(draft, Draft)
    assert (draft.source, draft.idea) == (KERNEL, "two rows a program.")


async def test_tools_work_within_a_node_of_the_loop(serve: Serve, model: Ask) -> None:
    """The conversation is a graph of its own inside of one that keeps every step, and leaves nothing in it."""
    server, drafts = serve(Rule(calls=[("compile", SOURCE)], uses=1), Rule(calls=[("submit", AGAIN)])), []

    async def write(state: MessagesState) -> dict[str, list[AnyMessage]]:
        drafts.append(await coder(model, server, Bench()).write(samples.task(samples.candidate())))
        return {"messages": []}

    builder = StateGraph(MessagesState).add_node(write)
    builder.add_edge(START, "write")
    loop = builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    ended = await loop.ainvoke({"messages": []}, config, durability="sync")
    assert isinstance(drafts[0], Draft)
    assert ended["messages"] == []
