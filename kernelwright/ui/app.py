"""The pages and their addresses, as an ASGI application."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from kernelwright.ui import charts, highlighting
from kernelwright.ui.memory import Memory
from kernelwright.ui.reading import Runs
from kernelwright.ui.tree import branches
from tools.errors import KernelwrightError

HERE = Path(__file__).parent
COOKIE = "kernelwright-token"
POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
"""No script but our own file runs, whatever a candidate's source or a model's answer holds."""
Page = Callable[[Request], Response]


def build_app(home: Path, hosts: Sequence[str], token: str = "") -> ASGIApp:
    """Make the application over the runs and the memory in `home`.

    It answers under the names of `hosts` alone, and, where there is a `token`, only who has it.
    """
    pages = _Pages(Runs(home), Memory(home))
    routes = [
        Route("/", pages.runs),
        Route("/runs/{run}", pages.run),
        Route("/runs/{run}/steps", pages.steps),
        Route("/runs/{run}/candidates/{name}", pages.candidate),
        Route("/compare", pages.compare),
        Route("/memory", pages.memory),
        Route("/memory/{name}", pages.strategy),
        Route("/api/runs", pages.api_runs),
        Route("/api/runs/{run}", pages.api_run),
        Route("/colours.css", lambda request: PlainTextResponse(_colours(), media_type="text/css")),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    guards = [Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)), Middleware(_Guard, token=token)]
    return Starlette(routes=routes, middleware=guards, exception_handlers={KernelwrightError: pages.refused, 404: pages.missing})


@cache
def _colours() -> str:
    return highlighting.styles()


class _Guard:
    """Lets nobody in without the token, and lets no page run or show anything from elsewhere."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        given = request.query_params.get("token", "") or request.cookies.get(COOKIE, "")
        if self._token and not hmac.compare_digest(given.encode(), self._token.encode()):
            refusal = "This page needs its token: open the address that `kernelwright ui` printed.\n"
            await PlainTextResponse(refusal, status_code=401)(scope, receive, send)
            return
        if self._token and "token" in request.query_params:
            moved = RedirectResponse(request.url.path)
            moved.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            await moved(scope, receive, send)
            return
        await self._app(scope, receive, _with_headers(send))


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            more = {"content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
            message["headers"] = [*message["headers"], *((name.encode(), value.encode()) for name, value in more.items())]
        await send(message)

    return sending


class _Pages:
    """One method a page; they run in threads, since what they read lies in files."""

    def __init__(self, runs: Runs, memory: Memory) -> None:
        self._runs, self._memory = runs, memory
        self._templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
        self._templates.globals |= {"python_html": highlighting.python_html, "diff_html": highlighting.diff_html}

    def _page(self, template: str, status: int = 200, **facts: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(**facts), status_code=status)

    def runs(self, request: Request) -> Response:
        wanted = request.query_params.get("q", "")
        found = [line for line in self._runs.all() if wanted.lower() in line["run"].lower()]
        return self._page("runs.html.j2", runs=found, wanted=wanted, home=self._runs.home, live=True)

    def run(self, request: Request) -> Response:
        facts = self._runs.tree(request.path_params["run"])
        plots = [plot for plot in (charts.gain_chart(facts["candidates"]), charts.times_chart(facts)) if plot]
        return self._page("run.html.j2", run=facts, plots=plots, tree=branches(facts), live=facts["state"] != "ended")

    def steps(self, request: Request) -> Response:
        return self._page("steps.html.j2", steps=self._runs.nodes(request.path_params["run"]))

    def candidate(self, request: Request) -> Response:
        run, name = request.path_params["run"], request.path_params["name"]
        facts = self._runs.candidate(run, name)
        timings = [charts.raw_chart(one["timing"]) for one in facts["evaluations"]]
        return self._page("candidate.html.j2", run=facts["run"], one=facts, plots=[plot for plot in timings if plot])

    def compare(self, request: Request) -> Response:
        sides = [request.query_params.get(name, "") for name in ("left", "right")]
        found = [self._side(side) for side in sides]
        text = highlighting.difference(found[0]["source"], found[1]["source"], *sides) if all(found) else ""
        return self._page("compare.html.j2", sides=sides, found=found, difference=text)

    def _side(self, named: str) -> dict[str, Any]:
        """Read RUN or RUN:CANDIDATE; the run alone stands for what it delivered."""
        run, _, name = named.partition(":")
        if not run:
            return {}
        facts = self._runs.tree(run)
        name = name or facts["delivered"] or "root"
        one = {} if name == "root" else self._runs.candidate(run, name)
        return {"run": facts, "one": one, "source": self._runs.source(run, name)}

    def memory(self, request: Request) -> Response:
        return self._page("memory.html.j2", strategies=self._memory.all())

    def strategy(self, request: Request) -> Response:
        return self._page("strategy.html.j2", one=self._memory.one(request.path_params["name"]))

    def api_runs(self, request: Request) -> Response:
        return JSONResponse(self._runs.all())

    def api_run(self, request: Request) -> Response:
        return JSONResponse(self._runs.tree(request.path_params["run"]))

    def refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, KernelwrightError)
        return self._page("refused.html.j2", status=404, what=error.what, mend=error.mend)

    def missing(self, request: Request, error: Exception) -> Response:
        return self._page("refused.html.j2", status=404, what=f"There is no page {request.url.path}.", mend="Begin with the list of runs.")
