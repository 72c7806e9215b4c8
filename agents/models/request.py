"""One request as a server can take it: what it lacks is worked around here, and the same question has the same key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from agents.models.messages import Message, ToolSpec
from agents.models.settings import ModelSettings
from tools.records import content_hash


class Feature(StrEnum):
    """What some OpenAI-compatible servers and models cannot do, in the order in which it is given up."""

    LOGPROBS = "logprobs"
    """Log-probabilities of the reply's tokens, of the first of which the alternatives are read."""
    TOOLS = "tools"
    """Tools that a model may call before it answers."""
    JSON_SCHEMA = "json_schema"
    TEMPERATURE = "temperature"
    SEED = "seed"
    SYSTEM_ROLE = "system_role"
    MAX_TOKENS = "max_tokens"
    """Hosted reasoning models take only the newer name of the output limit, local servers are sure to know only this one."""
    MAX_COMPLETION_TOKENS = "max_completion_tokens"
    """Without it either, the limit is left out."""
    CHAT = "chat_completions"
    """Some hosted models answer on the Responses endpoint only."""


WORDS = {
    Feature.LOGPROBS: ("logprobs",),
    Feature.TOOLS: ("tool", "function call", "function_call", "--jinja"),
    Feature.JSON_SCHEMA: ("response_format", "json_schema", "json schema", "structured output", "guided", "grammar"),
    Feature.TEMPERATURE: ("temperature",),
    Feature.SEED: ("seed",),
    Feature.SYSTEM_ROLE: ("system role", "system message", "role 'system'", "roles must alternate", "system_role"),
    Feature.MAX_TOKENS: ("max_tokens",),
    Feature.MAX_COMPLETION_TOKENS: ("max_completion_tokens",),
    Feature.CHAT: ("v1/responses", "responses api", "responses endpoint"),
}
"""How servers name what they do not take."""

WORKAROUNDS = {
    Feature.LOGPROBS: "The server gives no log-probabilities for this model: it was asked without.",
    Feature.TOOLS: "The server takes no tools for this model: it was asked to answer without them.",
    Feature.JSON_SCHEMA: "The server takes no JSON schema: the answer was asked for as a JSON block and checked here.",
    Feature.TEMPERATURE: "The server takes no temperature for this model: it was left out.",
    Feature.SEED: "The server takes no seed: it was left out.",
    Feature.SYSTEM_ROLE: "The server takes no system message: it was put before the first user message.",
    Feature.MAX_TOKENS: "The server takes no max_tokens: the output limit was sent as max_completion_tokens.",
    Feature.MAX_COMPLETION_TOKENS: "The server takes no max_completion_tokens: the output limit was left out.",
    Feature.CHAT: "The server answers this model on the Responses endpoint only.",
}

ALTERNATIVES = 20
"""Tokens whose log-probabilities are asked for at each place of a reply: the most that the hosted service gives."""


@dataclass(frozen=True)
class Request:
    """Messages and parameters, ready to be sent."""

    role: str
    messages: tuple[Message, ...]
    schema: type[BaseModel] | None
    parameters: dict[str, float | int]
    """JSON fields as they are sent: `temperature`, `seed`, and the output limit under the name the server takes."""
    as_schema: bool
    """Whether the server is asked to hold the answer to the schema."""
    responses: bool = False
    """Whether it goes to the Responses endpoint."""
    tools: tuple[ToolSpec, ...] = ()
    may_call: bool = True
    """Whether it may call them still; they are named as long as the conversation has calls of them."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """The optional features it uses."""
        used = {
            Feature.LOGPROBS: "logprobs" in self.parameters,
            Feature.TOOLS: bool(self.tools),
            Feature.JSON_SCHEMA: self.as_schema,
            Feature.TEMPERATURE: "temperature" in self.parameters,
            Feature.SEED: "seed" in self.parameters,
            Feature.SYSTEM_ROLE: any(m.role == "system" for m in self.messages),
            Feature.MAX_TOKENS: "max_tokens" in self.parameters,
            Feature.MAX_COMPLETION_TOKENS: "max_completion_tokens" in self.parameters,
            Feature.CHAT: not self.responses,
        }
        return tuple(feature for feature, is_used in used.items() if is_used)

    def blame(self, complaint: str) -> Feature | None:
        """Guess from a server's complaint which feature it refuses; None where it can be none of those in use."""
        text = complaint.lower()
        if "context" in text and any(word in text for word in ("length", "window", "maximum", "exceed")):
            return None
        named = (f for f in self.features if any(word in text for word in WORDS[f]))
        # another endpoint is tried only where the server says so
        return next(named, next((f for f in self.features if f is not Feature.CHAT), None))


def question_key(
    role: str,
    messages: tuple[Message, ...],
    schema: type[BaseModel] | None,
    settings: ModelSettings,
    purpose: str,
    place: str = "",
    *,
    odds: bool = False,
    tools: tuple[ToolSpec, ...] = (),
    may_call: bool = True,
) -> str:
    """Name a question by its contents, as it was asked and before anything was worked around.

    The server's address is left out, so that a run can go on with its server elsewhere; `place` adds what must set it apart.
    """
    parts = {
        "messages": [m.model_dump(exclude_defaults=True) for m in messages],
        "temperature": settings.temperature_of(role),
        "seed": settings.seed,
        "max_output_tokens": settings.max_output_tokens,
        "schema": json_schema(schema) if schema else None,
        # questions without have the keys that they have always had
        **({"odds": True} if odds else {}),
        **({"tools": [one.name for one in tools] if may_call else []} if tools else {}),
    }
    return content_hash("call", place, purpose, role, settings.name, json.dumps(parts, sort_keys=True))


def make_request(
    role: str,
    messages: tuple[Message, ...],
    schema: type[BaseModel] | None,
    settings: ModelSettings,
    lacks: frozenset[Feature],
    limit: int | None = None,
    *,
    odds: bool = False,
    tools: tuple[ToolSpec, ...] = (),
    may_call: bool = True,
) -> Request:
    """Shape a question for a server that lacks some features; `limit` is the output limit, the settings' own where it is None."""
    responses = settings.api == "responses" or Feature.CHAT in lacks
    parameters: dict[str, float | int] = {}
    temperature = settings.temperature_of(role)
    if temperature is not None and Feature.TEMPERATURE not in lacks:
        parameters["temperature"] = temperature
    # the Responses endpoint knows no seed
    if settings.seed is not None and Feature.SEED not in lacks and not responses:
        parameters["seed"] = settings.seed
    if odds and Feature.LOGPROBS not in lacks and not responses:
        parameters |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
    limit = settings.max_output_tokens if limit is None else limit
    if limit and (name := _limit_name(settings, lacks, responses=responses)):
        parameters[name] = limit
    as_schema = schema is not None and Feature.JSON_SCHEMA not in lacks
    if schema is not None and not as_schema:
        messages = (*messages[:-1], _with_json_rule(messages[-1], schema))
    if Feature.SYSTEM_ROLE in lacks:
        messages = _without_system(messages)
    if Feature.TOOLS in lacks:
        messages, tools = _without_tools(messages), ()
    return Request(role, messages, schema, parameters, as_schema, responses, tools, may_call)


def _limit_name(settings: ModelSettings, lacks: frozenset[Feature], *, responses: bool) -> str:
    """What the server calls the output limit; empty where it takes none."""
    if responses:
        return "max_output_tokens"
    if Feature.MAX_TOKENS not in lacks and not settings.is_hosted:
        return "max_tokens"
    return "" if Feature.MAX_COMPLETION_TOKENS in lacks else "max_completion_tokens"


def body(request: Request) -> dict[str, Any]:
    """Write parameters and schema as JSON fields of the endpoint.

    Not as arguments of the client: given `response_format`, it raises on a reply that was cut off, and its text and cost are lost.
    """
    schema = request.schema if request.as_schema else None
    if request.responses:
        text = {"text": {"format": {"type": "json_schema", **_named(schema)}}} if schema else {}
        # kept by the provider otherwise
        return {**request.parameters, **text, "store": False}
    return {**request.parameters, **({"response_format": {"type": "json_schema", "json_schema": _named(schema)}} if schema else {})}


def _named(schema: type[BaseModel]) -> dict[str, Any]:
    return {"name": schema.__name__, "schema": json_schema(schema), "strict": True}


@lru_cache(maxsize=64)
def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Write a model's JSON schema in the strict subset: every field required, no others allowed, nothing the subset leaves out.

    Kept, as every call to a server asks for it: not to be changed.
    """
    strict = _strict(schema.model_json_schema())
    assert isinstance(strict, dict)
    return strict


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {k: _strict(v) for k, v in node.items() if k not in {"default", "title"} or isinstance(v, dict)}
    if "properties" in kept:
        kept |= {"additionalProperties": False, "required": list(kept["properties"])}
    return kept


def _with_json_rule(message: Message, schema: type[BaseModel]) -> Message:
    rule = (
        "Answer with one block fenced by ```json and ``` that holds a single JSON object of this schema, "
        f"and nothing after it:\n{json.dumps(json_schema(schema))}"
    )
    return message.model_copy(update={"content": f"{message.content}\n\n{rule}"})


def _without_tools(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Tell in words what was called and what came of it."""
    told: list[Message] = []
    for message in messages:
        if message.calls:
            called = "\n".join(f"I call {one.name}({one.arguments})" for one in message.calls)
            told.append(Message(role="assistant", content=f"{message.content}\n{called}".strip()))
        elif message.role == "tool" and told and told[-1].role == "user":
            told[-1] = told[-1].model_copy(update={"content": f"{told[-1].content}\n\n{message.content}"})
        else:
            told.append(Message(role="user", content=message.content) if message.role == "tool" else message)
    return tuple(told)


def _without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    system = "\n\n".join(m.content for m in messages if m.role == "system")
    others = [m for m in messages if m.role != "system"]
    first = others[0].model_copy(update={"content": f"{system}\n\n{others[0].content}"})
    return (first, *others[1:]) if system else tuple(others)
