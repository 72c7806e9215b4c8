"""Traced nodes: each execution of a node, with its input and its update, is written to the run's store."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from langgraph.runtime import Runtime

from graphs.optimize.context import Context

StateT = TypeVar("StateT")
Node = Callable[[StateT, Runtime[Context]], Awaitable[dict[str, Any]]]


def traced(node: Node[StateT]) -> Node[StateT]:
    """Wrap a node so that the store has a span of every execution, also of one that a kill cut short."""

    @wraps(node)
    async def wrapper(state: StateT, runtime: Runtime[Context]) -> dict[str, Any]:
        subject = str(state.get("plan") or f"round {state.get('round', 0)}")  # type: ignore[attr-defined]
        name = node.__name__  # type: ignore[attr-defined]
        runtime.context.open_for(str(state.get("run") or ""))  # type: ignore[attr-defined]
        with runtime.context.services.store.span(name, subject, json.dumps(state, default=str)) as output:
            update = await node(state, runtime)
            output.append(json.dumps(update, default=str))
            return update

    return wrapper
