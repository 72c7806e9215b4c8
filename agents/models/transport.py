"""Sending one request over langchain-openai: time limit, retries, and every failure turned into a type of ours."""

from __future__ import annotations

import asyncio
import json
import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agents.models.bounded import bounded
from agents.models.clients import make_client
from agents.models.errors import ModelUnavailable
from agents.models.faults import Fault, classify
from agents.models.messages import Finish, ToolCall, Usage
from agents.models.pace import Pace
from agents.models.request import Request, body
from agents.models.settings import Key, ModelSettings, find_key

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_openai.chat_models.base import BaseChatOpenAI

PATIENCE = 1.5
"""Times the limit of one reply after which a question is not tried again."""
SILENCES = 3
"""Times the limit of one reply: where asking in vain has taken that long in a row, the server is not asked again in this session."""
MAX_REPLY_BYTES = 4 << 20
"""Of one reply as it is sent: 100,000 tokens with every character escaped are less."""
LONGEST_WAIT_S = 60.0
"""Of our own back-off; a server that asks for longer in Retry-After gets it, up to the time limit of a reply."""


@dataclass(frozen=True)
class Reply:
    """What the server sent back."""

    text: str
    finish: Finish
    usage: Usage
    retries: int
    odds: dict[str, float] = field(default_factory=dict)
    """Log-probabilities of the first token that says something, and of its alternatives."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that it calls."""
    seconds: float = 0.0
    """Retries and waiting included."""


class Rejected(Exception):  # noqa: N818 - an answer of the server, caught next door
    """The server refuses the request as it is (400, 422): perhaps for a feature it lacks."""


class Transport:
    """One server and model; owns its connections, one set an event loop."""

    def __init__(self, settings: ModelSettings) -> None:
        """Connect to nothing yet."""
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients: dict[bool, BaseChatOpenAI] = {}
        """By whether they ask the Responses endpoint."""
        self._http: Any = None
        self._pace = Pace(settings.concurrency, settings.requests_per_minute)
        self._key: Key | None = None
        self._answered = False
        self._failed = False
        """Whether the last request failed for good: the next one is then tried once only, as waiting did not help before."""
        self._silent_s = 0.0
        """How long asking in vain has taken since the last reply."""

    async def send(self, request: Request, purpose: str) -> Reply:
        """Ask until there is a reply or no retry is left.

        Raises Rejected for a request the server cannot take, UserError for what the user must mend, ModelUnavailable for the rest.
        """
        started = time.monotonic()
        self._connect(responses=request.responses)
        async with self._pace.slots:
            if self._silent_s >= SILENCES * self._settings.timeout_s:
                raise self._unavailable(f"has given no reply in {self._silent_s:.0f} s of asking, and is not asked again")
            await self._pace.turn()
            reply = await self._patiently(request, purpose)
        return replace(reply, seconds=time.monotonic() - started)

    async def _patiently(self, request: Request, purpose: str) -> Reply:
        """Try, and take down for how long nothing but failures came."""
        began = time.monotonic()
        try:
            reply = await self._tried(request, purpose, began)
        except ModelUnavailable:
            self._silent_s += time.monotonic() - began
            raise
        self._silent_s = 0.0
        return reply

    async def _tried(self, request: Request, purpose: str, began: float) -> Reply:
        client = self._connect(responses=request.responses)
        tries = 1 if self._failed else self._settings.retries + 1
        for attempt in range(tries):
            try:
                if attempt:
                    await self._pace.turn()
                reply = _read(await self._once(client, request, purpose), attempt)
            except Exception as error:
                fault = await classify(error, self._settings, self._source, client, self._answered)
                await self._wait_or_raise(fault, attempt, began, last=attempt == tries - 1)
                continue
            self._answered, self._failed = True, False
            return reply
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Close the connections of this event loop."""
        if self._http is not None and self._loop is asyncio.get_running_loop():
            await self._http.aclose()
        self._clients, self._http, self._loop = {}, None, None

    async def _once(self, client: BaseChatOpenAI, request: Request, purpose: str) -> AIMessage:
        turns = [message.fields for message in request.messages]
        config: RunnableConfig = {"run_name": request.role, "metadata": {"purpose": purpose}}
        async with asyncio.timeout(self._settings.timeout_s):
            if not request.tools:
                return await client.ainvoke(turns, config, extra_body=body(request))
            tools = [{"type": "function", "function": tool.model_dump()} for tool in request.tools]
            bound = client.bind_tools(tools, tool_choice="auto" if request.may_call else "none")
            return await bound.ainvoke(turns, config, extra_body=body(request))

    async def _wait_or_raise(self, fault: Fault, attempt: int, began: float, last: bool) -> None:
        if fault.rejected:
            raise Rejected(fault.text)
        if fault.mend is not None:
            raise fault.mend
        wait = min(self._settings.backoff_s * 2**attempt, LONGEST_WAIT_S) if fault.wait_s is None else fault.wait_s
        wait = min(wait, self._settings.timeout_s)
        late = time.monotonic() - began + wait > PATIENCE * self._settings.timeout_s
        if last or late or not fault.retry:
            self._failed = fault.retry
            tries = f"after {attempt + 1} tries" if attempt else "at the first try"
            raise self._unavailable(f"gave no usable reply {tries}: {fault.text.removesuffix('.')}")
        if fault.wait_s is not None:
            self._pace.hold(wait)
        await asyncio.sleep(wait)

    def _unavailable(self, how: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"The model {self._settings.name!r} at {self._settings.endpoint} {how}.",
            "Resume the run when the server answers again; nothing finished is lost.",
        )

    @property
    def _source(self) -> str:
        return self._key.source if self._key else "no key"

    def _connect(self, *, responses: bool) -> BaseChatOpenAI:
        """Make the client of this event loop; connections of another loop cannot be used here."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            from openai import DefaultAsyncHttpxClient

            self._key = self._key or find_key(self._settings)
            self._loop, self._clients = loop, {}
            self._pace = Pace(self._settings.concurrency, self._settings.requests_per_minute)
            self._http = DefaultAsyncHttpxClient(timeout=self._settings.timeout_s, **bounded(MAX_REPLY_BYTES))
        if responses not in self._clients:
            assert self._key is not None
            self._clients[responses] = make_client(self._settings, self._key, self._http, responses=responses)
        return self._clients[responses]


def _read(message: AIMessage, retries: int) -> Reply:
    refusal = _refusal(message)
    facts = message.response_metadata
    stopped = facts.get("finish_reason") or (facts.get("incomplete_details") or {}).get("reason")
    cut_off = stopped in ("length", "max_output_tokens")
    finish: Finish = "refusal" if refusal or stopped == "content_filter" else "length" if cut_off else "stop"
    text = refusal or str(message.text)
    return Reply(text=text, finish=finish, usage=_usage(message), retries=retries, odds=_odds(facts), calls=_calls(message))


def _calls(message: AIMessage) -> tuple[ToolCall, ...]:
    """Tools that a message calls, those with broken arguments too: whoever carries them out says what is wrong."""
    whole = [ToolCall(id=one["id"] or "", name=one["name"], arguments=json.dumps(one["args"])) for one in message.tool_calls]
    broken = [
        ToolCall(id=one["id"] or "", name=one["name"] or "", arguments=one["args"] or "") for one in message.invalid_tool_calls
    ]  # fmt: skip
    return (*whole, *broken)


def _odds(facts: dict[str, Any]) -> dict[str, float]:
    """Alternatives of the first token that is no white space; those that differ in white space only are added up."""
    tokens = (facts.get("logprobs") or {}).get("content") or []
    first: dict[str, Any] = next((token for token in tokens if str(token.get("token", "")).strip()), {})
    odds: dict[str, float] = {}
    for one in first.get("top_logprobs") or ():
        name, value = str(one.get("token", "")).strip(), float(one.get("logprob", -math.inf))
        if name and math.isfinite(value):
            odds[name] = _sum_of_logs(odds[name], value) if name in odds else value
    return odds


def _sum_of_logs(one: float, other: float) -> float:
    """Logarithm of the sum of two probabilities; servers write -9999 for what they hold to be impossible, whose exponential is 0."""
    return max(one, other) + math.log1p(math.exp(-abs(one - other)))


def _refusal(message: AIMessage) -> str:
    """Where Chat Completions or Responses put the words of a model that declines."""
    blocks = message.content if isinstance(message.content, list) else []
    said = [str(b.get("refusal") or "") for b in blocks if isinstance(b, dict) and b.get("type") == "refusal"]
    return str(message.additional_kwargs.get("refusal") or "".join(said))


def _usage(message: AIMessage) -> Usage:
    counted = message.usage_metadata
    if counted is None:
        return Usage(counted=False)
    return Usage(
        input_tokens=counted["input_tokens"],
        output_tokens=counted["output_tokens"],
        cached_tokens=counted.get("input_token_details", {}).get("cache_read") or 0,
        reasoning_tokens=counted.get("output_token_details", {}).get("reasoning") or 0,
    )
