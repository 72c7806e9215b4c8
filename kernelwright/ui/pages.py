"""What each address answers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from graphs.run.steering import steer
from kernelwright.ui import charts, highlighting, profiles, tree
from kernelwright.ui.benches import Benches
from kernelwright.ui.comparing import Comparing
from kernelwright.ui.drawn_tree import drawn_tree
from kernelwright.ui.guard import Forms
from kernelwright.ui.memory import Memory
from kernelwright.ui.models import Models
from kernelwright.ui.overview import LISTED
from kernelwright.ui.reading import Runs, opened
from tools.errors import KernelwrightError, UserError

HERE = Path(__file__).parent
WARMED = 8
"""Runs that are read when the pages are begun."""
SHOWN = 200
"""Steps and model calls on one page, the latest."""


class Pages:
    """One method a page; they run in threads, since what they read lies in files."""

    def __init__(self, home: Path) -> None:
        """Show what is in `home`."""
        self._runs, self._memory, self._models, self._benches = Runs(home), Memory(home), Models(home), Benches(home)
        self._comparing, self._forms = Comparing(self._runs), Forms()
        self._templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
        self._templates.globals |= {
            "python_html": highlighting.python_html,
            "diff_html": highlighting.diff_html,
            "signs": tree.SIGNS,
            "mark_words": tree.WORDS,
        }
        self._templates.filters |= {"ago": _ago, "lasted": _lasted}

    def warm(self) -> None:
        """Read the newest runs before anyone asks."""
        self._runs.warm(WARMED)

    def _page(self, template: str, status: int = 200, **facts: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(**facts), status_code=status)

    def runs(self, request: Request) -> Response:
        """List the runs."""
        wanted = request.query_params.get("q", "")
        found = [line for line in self._runs.all() if wanted.lower() in line["run"].lower()]
        return self._page("runs.html.j2", runs=found, wanted=wanted, home=self._runs.home, live=True)

    def run(self, request: Request) -> Response:
        """Show a run; whoever has the page as it stands is told so."""
        name = request.path_params["run"]
        stamp = f'"{self._runs.stamp(name)}"'
        if stamp != '""' and request.headers.get("if-none-match") == stamp:
            return Response(status_code=304, headers={"etag": stamp})
        facts = self._runs.overview(name)
        drawn = tree.branches(facts)
        page = self._page(
            "run.html.j2",
            run=facts,
            plots=charts.gain_charts(facts["candidates"]),
            times=charts.time_bars(facts),
            picture=drawn_tree(drawn, facts["run"]),
            drawn=len(drawn),
            tree=tree.branches(facts, LISTED),
            word=self._forms.word,
            live=facts["state"] != "ended",
        )
        page.headers["etag"] = stamp
        return page

    async def steer(self, request: Request) -> Response:
        """Ask something of a run that works, and show its page again."""
        fields = await self._forms.read(request)
        run, kind = request.path_params["run"], fields.get("kind", "")
        if kind not in ("pause", "continue", "hint", "veto", "pin"):
            raise UserError(f"A run cannot be asked to {kind!r}.", "Use the forms of its page.")
        await run_in_threadpool(self._steer, run, kind, fields.get("text", ""))
        return RedirectResponse(f"/runs/{quote(run)}#steering", status_code=303)

    def _steer(self, run: str, kind: Any, text: str) -> None:
        with opened(self._runs.find(run)) as store:
            steer(store, kind, text)

    def steps(self, request: Request) -> Response:
        """Show what the nodes of the graph and the models did."""
        run = request.path_params["run"]
        lines = self._runs.overview(run)["lines"]
        candidates = {line["plan"]: name for name, line in lines.items()} | {name: name for name in lines}
        return self._page("steps.html.j2", steps=self._runs.nodes(run, SHOWN), candidates=candidates)

    def candidate(self, request: Request) -> Response:
        """Show a candidate, and how it differs from its parent or whatever `against` names."""
        run, name = request.path_params["run"], request.path_params["name"]
        one, whole = self._runs.candidate(run, name), self._runs.overview(run)
        against = request.query_params.get("against", "") or one["parent"]
        own = f"{one['run']}:{one['id']}"
        other = against if ":" in against else f"{one['run']}:{against}"
        evaluations = [
            {**found, "plot": charts.raw_chart(found["timing"]), "code": profiles.code_rows(found)} for found in one["evaluations"]
        ]
        return self._page(
            "candidate.html.j2",
            run=whole,
            one={**one, "evaluations": evaluations},
            roofline=profiles.roofline_chart({**one["profiles"], "this one": one["profile"]}),
            stalls=profiles.stall_bars(one["profile"]),
            against=against,
            difference=self._comparing.difference(other, own) if against != one["parent"] else one["diff"],
            others=self._comparing.others(whole, one["id"]),
            word=self._forms.word,
            live=whole["state"] != "ended",
        )

    def compare(self, request: Request) -> Response:
        """Show two runs or candidates side by side."""
        sides = [request.query_params.get(name, "").strip() for name in ("left", "right")]
        return self._page("compare.html.j2", sides=sides, known=self._comparing.known(sides), **self._comparing.two(sides))

    def models(self, request: Request) -> Response:
        """List the work on whole models."""
        return self._page("models.html.j2", models=self._models.all(), live=True)

    def model(self, request: Request) -> Response:
        """Show the work on one model."""
        facts = self._models.one(request.path_params["name"])
        return self._page("model.html.j2", model=facts, live=facts["under_way"])

    def benches(self, request: Request) -> Response:
        """List the benches."""
        return self._page("benches.html.j2", benches=self._benches.all(), live=True)

    def bench(self, request: Request) -> Response:
        """Show the results of one bench."""
        facts = self._benches.one(request.path_params["name"])
        return self._page("bench.html.j2", bench=facts, live=bool(facts.get("under_way")))

    def memory(self, request: Request) -> Response:
        """List the strategies."""
        wanted = request.query_params.get("q", "")
        return self._page("memory.html.j2", wanted=wanted, **self._memory.overview(wanted))

    def strategy(self, request: Request) -> Response:
        """Show one strategy: its record, where it was used, and how its lesson changed."""
        one = self._memory.one(request.path_params["name"])
        return self._page("strategy.html.j2", one=one, plot=charts.record_chart(one["trials"]))

    def api_runs(self, request: Request) -> Response:
        """Give the runs as JSON."""
        return JSONResponse(self._runs.all())

    def api_run(self, request: Request) -> Response:
        """Give a run as JSON."""
        return JSONResponse(self._runs.whole(request.path_params["run"]))

    def refused(self, request: Request, error: Exception) -> Response:
        """Say in a line what is wrong."""
        assert isinstance(error, KernelwrightError)
        title, status = ("Not done", 409) if request.method == "POST" else ("Not found", 404)
        return self._page("refused.html.j2", status=status, title=title, what=error.what, mend=error.mend)

    def missing(self, request: Request, error: Exception) -> Response:
        """Say that there is no such page."""
        what = f"There is no page {request.url.path}."
        return self._page("refused.html.j2", status=404, title="Not found", what=what, mend="Begin with the list of runs.")


def _ago(moment: float) -> str:
    """Say how long ago something was."""
    passed = max(0.0, time.time() - moment)
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60)):
        if passed >= seconds:
            return f"{passed / seconds:.0f} {unit} ago"
    return "just now"


def _lasted(seconds: float) -> str:
    """Write a duration in the unit that fits it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
