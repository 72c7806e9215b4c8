"""What a scripted server reads and writes: conversations and bodies as OpenAI's two endpoints have them."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.scripted_rules import Rule, Scenario


def refused(scenario: Scenario, authorization: str, body: dict[str, Any], path: str) -> tuple[int, dict[str, Any]] | None:
    """What a server checks before it looks at the conversation."""
    if scenario.key is not None and authorization not in (f"Bearer {scenario.key}", scenario.key):
        return 401, error("Incorrect API key provided.", "invalid_api_key")
    page = path.partition("?")[0]
    if not page.endswith(("/chat/completions", "/responses")):
        return 404, error("no such page", None)
    if "chat" in scenario.unsupported and not page.endswith("/responses"):
        return 404, error("This is not a chat model. Use the v1/responses endpoint.", None)
    if body.get("model") not in scenario.models:
        return 404, error(f"The model `{body.get('model')}` does not exist", "model_not_found")
    used = {
        "json_schema": (body.get("response_format") or {}).get("type") == "json_schema",
        "temperature": "temperature" in body,
        "seed": "seed" in body,
        "logprobs": "logprobs" in body,
        "tools": "tools" in body,
        "max_tokens": "max_tokens" in body,
        "max_completion_tokens": "max_completion_tokens" in body,
        "system_role": any(m["role"] == "system" for m in _turns(body)),
    }
    for feature in scenario.unsupported:
        if used.get(feature):
            return 400, error("invalid request" if scenario.vague else f"{feature} is not supported", None)
    return None


def error(message: str, code: str | None) -> dict[str, Any]:
    """The body of a refusal."""
    return {"error": {"message": message, "type": "scripted", "code": code}}


def completion(body: dict[str, Any], rule: Rule, answer: str) -> dict[str, Any]:
    """An answer as the chat endpoint writes it."""
    message: dict[str, Any] = {"role": "assistant", "content": None if rule.fault == "refusal" else answer}
    message |= {"refusal": answer if rule.fault == "refusal" else None}
    prompt, reply = len(json.dumps(_turns(body))) // 4, max(1, len(answer) // 4)
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
        "completion_tokens_details": {"reasoning_tokens": reply // 2},
    }
    finish = "length" if rule.fault == "length" else "stop"
    if rule.calls and "tools" in body and body.get("tool_choice") != "none":
        called = enumerate(rule.calls)
        calls = [{"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": given}} for i, (name, given) in called]
        message, finish = {**message, "tool_calls": calls}, "tool_calls"
    whole = {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": body["model"]}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": finish, "logprobs": _logprobs(body, rule)}]
    return whole if rule.fault == "no_usage" else {**whole, "usage": usage}


def _logprobs(body: dict[str, Any], rule: Rule) -> dict[str, Any] | None:
    """The first token's alternatives, the likeliest first, as many as were asked for."""
    if not body.get("logprobs") or not rule.logprobs:
        return None
    ranked = sorted(rule.logprobs.items(), key=lambda one: -one[1])
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in ranked]
    return {"content": [{**top[0], "top_logprobs": top[: int(body.get("top_logprobs") or 0)]}], "refusal": None}


def response(body: dict[str, Any], rule: Rule, answer: str) -> dict[str, Any]:
    """The same answer as the Responses endpoint writes it."""
    usage = completion(body, rule, answer)["usage"]
    part = {"type": "refusal", "refusal": answer} if rule.fault == "refusal" else {"type": "output_text", "text": answer, "annotations": []}
    cut_off = rule.fault == "length"
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 0,
        "model": body["model"],
        "status": "incomplete" if cut_off else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut_off else None,
        "error": None,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "output": [{"type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed", "content": [part]}],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": usage["prompt_tokens_details"],
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": usage["completion_tokens_details"],
            "total_tokens": usage["total_tokens"],
        },
    }


def _turns(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Messages of either endpoint."""
    turns: list[dict[str, Any]] = body["messages"] if "messages" in body else body["input"]
    return turns


def role_of(body: dict[str, Any]) -> str:
    """The role a conversation names in its first message."""
    found = re.search(r"You are the (\w+)", str(_turns(body)[0]["content"]))
    return found.group(1) if found else ""


def last_user(body: dict[str, Any]) -> str:
    """The last thing that the user says in a conversation."""
    return next((str(m["content"]) for m in reversed(_turns(body)) if m["role"] == "user"), "")
