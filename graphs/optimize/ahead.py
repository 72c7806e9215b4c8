"""What a run begins beside the measuring: the trace of its reference, Inductor's kernels, and memory's embedder and index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from graphs.run.compiled import begin_writing
from graphs.run.context import Services
from graphs.run.works import working
from tools.errors import KernelwrightError


def begin_ahead(services: Services, listener: Callable[[dict[str, Any]], None]) -> list[asyncio.Task[None]]:
    """Begin each in a thread or a process of its own; whoever needs one waits for it, and is told of what went wrong there."""
    beginnings = (_ready_coder(services, listener), _ready_memory(services), _ready_inductor(services))
    return [asyncio.create_task(one) for one in beginnings]


async def _ready_coder(services: Services, listener: Callable[[dict[str, Any]], None]) -> None:
    with suppress(KernelwrightError), working(services.store, "tracing"):
        await services.team.coder.begin(services.problem, services.sheet, services.settings.trace_timeout_s)
    listener({"event": "traced"})


async def _ready_memory(services: Services) -> None:
    with suppress(KernelwrightError):
        await services.memory.prepare()


async def _ready_inductor(services: Services) -> None:
    with suppress(KernelwrightError):
        await begin_writing(services)
