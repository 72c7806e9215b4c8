"""The conversation of a model with its tools, as a graph: ask, let LangGraph's tool node carry out what is called, ask again."""

from __future__ import annotations

import asyncio
import contextvars
import json
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from langchain_core.tools import StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agents.models import Answer, Message, Model, ToolCall
from agents.writing.session import Session
from agents.writing.tools import NAME, SOURCE, TOOLS, Tool, specs

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

MOST_TURNS = 4
"""Questions beyond one for each call that is allowed: a model that calls what it may not is told so, and then cut off."""


async def converse(model: Model, role: str, messages: tuple[Message, ...], purpose: str, session: Session) -> Answer:
    """Ask until the model answers without a call, or hands a source in: then the answer's text ends with that source in a fenced block."""
    turns = session.left + MOST_TURNS
    talk = _Conversation(model, role, messages, purpose, session, turns)
    # a question and its calls take two steps of the graph
    config: RunnableConfig = {"recursion_limit": 2 * turns + 2, "callbacks": ensure_config().get("callbacks")}
    # a graph of its own: what the loop's has set about checkpoints would be taken over, and this one keeps none
    apart = contextvars.copy_context()
    apart.run(var_child_runnable_config.set, None)
    await asyncio.create_task(talk.graph.ainvoke({"messages": []}, config), context=apart)
    answer = talk.answer
    if session.submitted:
        text = "\n".join((*talk.said, f"~~~~~python\n{session.submitted}~~~~~\n"))
        answer = answer.model_copy(update={"text": text, "finish": "stop"})
    return answer.model_copy(update={"calls": (), "notes": (*talk.notes, *((session.note,) if session.note else ()))})


class _Conversation:
    """One graph and what was said in it."""

    def __init__(self, model: Model, role: str, opening: tuple[Message, ...], purpose: str, session: Session, turns: int) -> None:
        self._model, self._role, self._opening, self._purpose = model, role, opening, purpose
        self._session = session
        self._turns = turns
        self.answer = Answer(text="")
        self.notes: tuple[str, ...] = ()
        self.said: list[str] = []
        """What the model wrote beside its calls."""
        self.graph = self._build()

    def _build(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        builder = StateGraph(MessagesState)
        builder.add_node("ask", self._ask)
        builder.add_node("tools", ToolNode([self._tool(one) for one in TOOLS], handle_tool_errors=True))
        builder.add_edge(START, "ask")
        builder.add_conditional_edges("ask", self._after_ask)
        builder.add_conditional_edges("tools", self._after_tools)
        # what was said is in the run's store, call by call
        return builder.compile(checkpointer=False, name="writing")

    def _tool(self, tool: Tool) -> StructuredTool:
        async def with_source(source: str = "") -> str:
            return await self._session.call(tool.name, source)

        async def with_name(name: str = "") -> str:
            return await self._session.call(tool.name, None, name)

        async def without() -> str:
            return await self._session.call(tool.name, None)

        work = {SOURCE: with_source, NAME: with_name}.get(tool.takes, without)
        return StructuredTool.from_function(coroutine=work, name=tool.name, description=tool.does)

    async def _ask(self, state: MessagesState) -> dict[str, list[AnyMessage]]:
        self._turns -= 1
        messages = (*self._opening, *map(_ours, state["messages"]))
        may_call = self._session.left > 0 and self._turns > 0
        self.answer = await self._model.ask_with_tools(self._role, messages, specs(), may_call=may_call, purpose=self._purpose)
        self.said += [self.answer.text] if self.answer.text else []
        self.notes = tuple(dict.fromkeys((*self.notes, *self.answer.notes)))
        return {"messages": [_theirs(self.answer)]}

    def _after_ask(self, state: MessagesState) -> Literal["tools", "__end__"]:
        return "tools" if self.answer.calls and self._turns > 0 else "__end__"

    def _after_tools(self, state: MessagesState) -> Literal["ask", "__end__"]:
        return "__end__" if self._session.submitted else "ask"


def _theirs(answer: Answer) -> AIMessage:
    """An answer as LangChain has it; broken arguments come to the tool as an empty source, which it refuses."""
    calls = [{"name": one.name, "args": _arguments(one), "id": one.id, "type": "tool_call"} for one in answer.calls]
    return AIMessage(content=answer.text, tool_calls=calls)


def _ours(message: AnyMessage) -> Message:
    if isinstance(message, ToolMessage):
        return Message(role="tool", content=str(message.content), answers=message.tool_call_id)
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    made = tuple(ToolCall(id=one["id"] or "", name=one["name"], arguments=json.dumps(one["args"])) for one in calls)
    return Message(role="assistant", content=str(message.text), calls=made)


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        read = json.loads(call.arguments or "{}")
    except ValueError:
        return {SOURCE: ""}
    return read if isinstance(read, dict) else {SOURCE: ""}
