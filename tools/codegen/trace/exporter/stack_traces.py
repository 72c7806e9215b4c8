"""Tracing without stack traces: torch writes one to each operator of a trace, a sixth of its time, and nothing here reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

SETTING = "do_not_emit_stack_traces"
"""Of torch.fx; a torch without it writes them all the same."""


@contextmanager
def without_stack_traces() -> Iterator[None]:
    """Have torch write none."""
    from torch.fx import config

    before = getattr(config, SETTING, None)
    if before is None:
        yield
        return
    setattr(config, SETTING, True)
    try:
        yield
    finally:
        setattr(config, SETTING, before)
