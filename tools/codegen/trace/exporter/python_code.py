"""Tracing without Python code: torch writes some after each pass over a trace, a seventh of its time, and none of it is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_python_code() -> Iterator[None]:
    """Have torch write the code of a trace when somebody asks for it; a torch that cannot wait writes it at once."""
    try:
        from torch.fx._lazy_graph_module import _use_lazy_graph_module
    except ImportError:
        yield
        return
    with _use_lazy_graph_module(True):
        yield
