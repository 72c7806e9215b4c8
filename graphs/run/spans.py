"""Traced nodes: each execution of a node, with its input and its update, is written to the run's store."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from langgraph.runtime import Runtime

from graphs.run.assembly import open_for
from graphs.run.context import Context

NodeT = TypeVar("NodeT", bound=Callable[..., Any])


def traced(node: NodeT) -> NodeT:
    """Wrap an async node so that the store has a span of every execution, also of one that a kill cut short."""

    @wraps(node)
    async def wrapper(state: dict[str, Any], runtime: Runtime[Context]) -> Any:
        subject = str(state.get("plan") or f"round {state.get('round', 0)}")
        open_for(runtime.context, str(state.get("run") or ""))
        with runtime.context.services.store.span(node.__name__, subject, json.dumps(_given(state))) as output:
            update = await node(state, runtime)
            output.append(json.dumps(update))
            return update

    return cast("NodeT", wrapper)


def _given(state: dict[str, Any]) -> dict[str, Any]:
    """A node's input, without what grows with the run: results of earlier rounds, and the search's state, which an earlier node gave."""
    given = {name: value for name, value in state.items() if name != "search"}
    if "plans" in given and "results" in given:
        given["results"] = {plan: candidate for plan, candidate in given["results"].items() if plan in given["plans"]}
    return given
