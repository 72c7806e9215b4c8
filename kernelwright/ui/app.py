"""The pages and their addresses, as an ASGI application."""

from __future__ import annotations

import gc
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from kernelwright.ui import highlighting
from kernelwright.ui.guard import Guard
from kernelwright.ui.pages import HERE, Pages
from tools.errors import KernelwrightError


def build_app(home: Path, hosts: Sequence[str], token: str = "") -> ASGIApp:
    """Make the application over the runs, models, benches and the memory in `home`.

    It answers under the names of `hosts` alone, and, where there is a `token`, only who has it.
    """
    pages = Pages(home)
    routes = [
        Route("/", pages.runs),
        Route("/runs/{run}", pages.run),
        Route("/runs/{run}/steer", pages.steer, methods=["POST"]),
        Route("/runs/{run}/steps", pages.steps),
        Route("/runs/{run}/candidates/{name}", pages.candidate),
        Route("/compare", pages.compare),
        Route("/models", pages.models),
        Route("/models/{name}", pages.model),
        Route("/benches", pages.benches),
        Route("/benches/{name}", pages.bench),
        Route("/memory", pages.memory),
        Route("/memory/{name}", pages.strategy),
        Route("/api/runs", pages.api_runs),
        Route("/api/runs/{run}", pages.api_run),
        Route("/colours.css", lambda request: PlainTextResponse(_colours(), media_type="text/css")),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]

    @asynccontextmanager
    async def begun(app: Starlette) -> AsyncIterator[None]:
        # what is imported stays: it need not be looked through for garbage at each page
        gc.freeze()
        # a first page of a long run would take longest
        threading.Thread(target=pages.warm, daemon=True).start()
        yield

    guards = [Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)), Middleware(Guard, token=token)]
    return Starlette(
        routes=routes, middleware=guards, lifespan=begun, exception_handlers={KernelwrightError: pages.refused, 404: pages.missing}
    )


@cache
def _colours() -> str:
    return highlighting.styles()
