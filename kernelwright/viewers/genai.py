"""Model calls and calls of tools in the words of OpenTelemetry's semantic conventions for generative AI.

The names are those of opentelemetry-semantic-conventions 0.66b2 (in development there; a test compares them).
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import urlsplit

from agents.models import Trouble
from agents.models.calls import CallRecord
from agents.models.messages import Message
from graphs.run.workbench import ToolUse
from kernelwright.viewers.facts import Value

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CAPTURED = ("true", "1", "span_only", "span_and_event")
"""Values of that variable that ask for prompts and answers in spans."""
FINISH = {"refusal": "content_filter"}
"""Words of the conventions for why a reply ended, where ours differ."""


def call_attributes(call: CallRecord, run: str) -> dict[str, Value | None]:
    """Say whom a call asked, for what, and what it used; prompts and answers only where the variable asks for them."""
    known = call.usage.counted
    found: dict[str, Value | None] = {
        **_asked(call.role, call.model, run),
        **_server(call.server),
        "gen_ai.request.temperature": call.parameters.get("temperature"),
        "gen_ai.request.seed": _whole(call.parameters.get("seed")),
        "gen_ai.request.max_tokens": _whole(call.parameters.get("max_tokens") or call.parameters.get("max_completion_tokens")),
        "gen_ai.output.type": "json" if call.schema_name else "text",
        "gen_ai.response.model": call.model,
        "gen_ai.response.finish_reasons": ["tool_call" if call.calls else FINISH.get(call.finish, call.finish)],
        "gen_ai.usage.input_tokens": call.usage.input_tokens if known else None,
        "gen_ai.usage.output_tokens": call.usage.output_tokens if known else None,
        "gen_ai.usage.cache_read.input_tokens": call.usage.cached_tokens if known else None,
        "gen_ai.usage.reasoning.output_tokens": call.usage.reasoning_tokens if known else None,
        "kernelwright.purpose": call.purpose,
        "kernelwright.cost_usd": call.cost_usd,
        "kernelwright.retries": call.retries,
        "kernelwright.source": call.source,
    }
    return found | _content(call) if captures() else found


def trouble_attributes(trouble: Trouble, run: str) -> dict[str, Value | None]:
    """Say of a call that led to nothing what kind of trouble it was."""
    return {**_asked(trouble.role, trouble.model, run), "error.type": trouble.kind, "kernelwright.purpose": trouble.purpose}


def tool_attributes(use: ToolUse, run: str) -> dict[str, Value | None]:
    """Say which tool was called; what it said only where the variable asks for content."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": use.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": run,
        "kernelwright.purpose": use.purpose,
        "gen_ai.tool.call.result": use.said if captures() else None,
    }


def captures() -> bool:
    """Whether the user asks for prompts and answers in spans."""
    return os.environ.get(CAPTURE, "").strip().lower() in CAPTURED


def _asked(role: str, model: str, run: str) -> dict[str, Value | None]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.agent.name": role,
        "gen_ai.conversation.id": run,
    }


def _server(url: str) -> dict[str, Value | None]:
    """Name the server; all are asked by OpenAI's protocol, which is what the conventions want to know of them."""
    parts = urlsplit(url)
    azure = bool(parts.hostname and parts.hostname.endswith(".azure.com"))
    default = {"https": 443, "http": 80}.get(parts.scheme)
    return {
        "gen_ai.provider.name": "azure.ai.openai" if azure else "openai",
        "server.address": parts.hostname,
        "server.port": parts.port or default,
    }


def _content(call: CallRecord) -> dict[str, Value | None]:
    said = [{"type": "text", "content": call.text}] if call.text else []
    asked = [{"type": "tool_call", "id": one.id, "name": one.name, "arguments": _parsed(one.arguments)} for one in call.calls]
    reply = {"role": "assistant", "parts": [*said, *asked], "finish_reason": FINISH.get(call.finish, call.finish)}
    return {
        "gen_ai.input.messages": json.dumps([_message(one) for one in call.messages]),
        "gen_ai.output.messages": json.dumps([reply]),
    }


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": message.answers, "response": message.content}]}
    asked = [{"type": "tool_call", "id": one.id, "name": one.name, "arguments": _parsed(one.arguments)} for one in message.calls]
    return {"role": message.role, "parts": [*([{"type": "text", "content": message.content}] if message.content else []), *asked]}


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
