"""Pausing a run at a question that is answered later: the graph stops there, and resuming it asks again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.types import interrupt

from tools.errors import Postponed


@contextmanager
def pausing() -> Iterator[None]:
    """Turn a postponed answer into LangGraph's interrupt: what else runs at the same time goes on to its own end."""
    try:
        yield
    except Postponed as postponed:
        interrupt(postponed.what)
        # a resume that carries a value instead of asking again
        raise
