"""What a run begins before it is asked for: the trace of its reference, and memory's embedder and index, beside the measuring."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from graphs.run.context import Services
from graphs.run.works import working
from tools.errors import KernelwrightError


def begin_ahead(services: Services, listener: Callable[[dict[str, Any]], None]) -> list[asyncio.Task[None]]:
    """Begin both, each in a thread or a process of its own; whoever needs one waits for it, and is told of what went wrong there."""
    return [asyncio.create_task(_ready_coder(services, listener)), asyncio.create_task(_ready_memory(services))]


async def _ready_coder(services: Services, listener: Callable[[dict[str, Any]], None]) -> None:
    with suppress(KernelwrightError), working(services.store, "tracing"):
        await services.team.coder.begin(services.problem, services.sheet, services.settings.trace_timeout_s)
    listener({"event": "traced"})


async def _ready_memory(services: Services) -> None:
    with suppress(KernelwrightError):
        await services.memory.prepare()
