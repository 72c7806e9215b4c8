"""An answer in the form of OpenAI's endpoints. Usage is stated where tokens were counted; else clients estimate, or say it is unknown."""

from __future__ import annotations

import time
from typing import Any

from kernelwright.desk.folder import Call, Given

MODEL = "desk"
"""The one model that is listed; requests may name any."""
Body = dict[str, Any]


def models() -> Body:
    """List the model."""
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "you"}]}


def completion(number: int, request: Body, given: Given, used: dict[str, int] | None = None) -> Body:
    """Answer as chat completions do; `used` has the tokens of `input` and `output`, where they were counted."""
    message: Body = {"role": "assistant", "content": given.text or None if given.calls else given.text}
    if given.calls:
        message["tool_calls"] = [
            {"id": _call_id(number, index), "type": "function", "function": call._asdict()} for index, call in enumerate(given.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if given.calls else "stop"}
    fixed = {"object": "chat.completion", "created": int(time.time()), "choices": [choice]}
    return {**_facts(f"chatcmpl-{number}", request), **fixed, **_usage(used, "prompt_tokens", "completion_tokens")}


def response(number: int, request: Body, given: Given, used: dict[str, int] | None = None) -> Body:
    """Answer as Responses do; `used` as for chat completions."""
    text = {"type": "output_text", "text": given.text, "annotations": []}
    said = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
    output = [*([said] if given.text or not given.calls else []), *(_called(number, *one) for one in enumerate(given.calls))]
    fixed = {"object": "response", "created_at": int(time.time()), "status": "completed", "tool_choice": "auto"}
    stated = _usage(used, "input_tokens", "output_tokens")
    return {**_facts(f"resp_{number}", request), **fixed, **stated, "tools": [], "parallel_tool_calls": True, "output": output}


def refusal(what: str) -> Body:
    """Say what is wrong with a request, or with its answer."""
    return {"error": {"message": what, "type": "invalid_request_error", "code": None, "param": None}}


def _usage(used: dict[str, int] | None, asked: str, answered: str) -> Body:
    if used is None:
        return {}
    return {"usage": {asked: used["input"], answered: used["output"], "total_tokens": sum(used.values())}}


def _facts(name: str, request: Body) -> Body:
    return {"id": name, "model": request.get("model") or MODEL}


def _called(number: int, index: int, call: Call) -> Body:
    name = _call_id(number, index)
    return {"type": "function_call", "id": f"fc_{name}", "call_id": name, "status": "completed", **call._asdict()}


def _call_id(number: int, index: int) -> str:
    return f"call_{number}_{index}"
