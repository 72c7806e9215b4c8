"""Two runs or candidates side by side, and what can be compared with what."""

from __future__ import annotations

from typing import Any

from graphs.run.settings import settings_of
from kernelwright.screen.versus import differing, incomparable, run_rows, verdict_of
from kernelwright.ui.highlighting import difference
from kernelwright.ui.reading import Runs, opened
from tools.records import ROOT

Facts = dict[str, Any]
CELLS = ("this candidate", "outcome", "step", "why", "written by")


class Comparing:
    """Reads RUN, which stands for what the run delivered, or RUN:CANDIDATE."""

    def __init__(self, runs: Runs) -> None:
        """Compare what is in `runs`."""
        self._runs = runs

    def two(self, sides: list[str]) -> Facts:
        """Both sides, and where both are named a table of them, what is set up differently, a verdict and the difference of the sources."""
        found = [self._side(side) for side in sides]
        if not all(found):
            return {"found": found, "rows": [], "differ": {}, "verdict": "", "difference": ""}
        runs = [side["run"] for side in found]
        names = [f"{side['run']['run']}:{side['name']}" for side in found]
        return {
            "found": found,
            "rows": _rows(found, named=any(":" in side for side in sides)),
            "differ": self._differing(runs) if runs[0]["run"] != runs[1]["run"] else {},
            "verdict": verdict_of(runs, self._unlike(runs)) if runs[0]["run"] != runs[1]["run"] else "",
            "difference": difference(found[0]["source"], found[1]["source"], *names),
        }

    def difference(self, left: str, right: str) -> str:
        """The difference of two candidates' sources."""
        sources = [self._runs.source(*_split(side)) for side in (left, right)]
        return difference(sources[0], sources[1], left, right)

    def others(self, run: Facts, name: str) -> list[tuple[str, str]]:
        """Candidates of the same run to compare one with: their ids and words, those that are listed, and the reference."""
        lines = [(one, f"{one[:6]} {_gain(line)}{line['what']}") for one, line in run["lines"].items() if one != name]
        return [(ROOT, "the reference"), *lines]

    def known(self, sides: list[str]) -> list[tuple[str, str]]:
        """What may be typed: every run, and the candidates of runs that were named."""
        runs = [(line["run"], line["state"]) for line in self._runs.all() if not line["damage"]]
        named = {run for run, _ in map(_split, sides) if run}
        inside = [self._runs.overview(run) for run in named]
        return [*runs, *((f"{run['run']}:{one}", f"{_gain(line)}{line['what']}") for run in inside for one, line in run["lines"].items())]

    def _side(self, named: str) -> Facts:
        run, name = _split(named)
        if not run:
            return {}
        facts = self._runs.overview(run)
        # the comparison of runs reads words of the champion alone
        facts = {**facts, "candidates": [{**point, **facts["lines"].get(point["id"], {})} for point in facts["candidates"]]}
        name = name or facts["delivered"] or ROOT
        one = {} if name == ROOT else self._runs.line(run, name)
        return {"run": facts, "one": one, "name": one.get("id", ROOT), "source": self._runs.source(run, one.get("id", ROOT))}

    def _differing(self, runs: list[Facts]) -> dict[str, list[Any]]:
        settings = []
        for run in runs:
            with opened(self._runs.find(run["run"])) as store:
                settings.append(settings_of(store))
        return differing(settings)

    def _unlike(self, runs: list[Facts]) -> str:
        return incomparable(runs, same_problem=runs[0]["problem_id"] == runs[1]["problem_id"])


def _rows(found: list[Facts], *, named: bool) -> list[tuple[str, list[str]]]:
    """What both runs came to, where there are two, and the candidates themselves, where they were `named`."""
    runs = [side["run"] for side in found]
    rows = list(run_rows(runs)) if runs[0]["run"] != runs[1]["run"] else []
    return [*rows, *((label, [_cell(side["one"], label) for side in found]) for label in CELLS if named)]


def _cell(one: Facts, label: str) -> str:
    if not one:
        return "the reference" if label == "this candidate" else "–"
    figures = f", {one['speedup']:.2f}x, {one['time_us']:,.1f} µs ({one['tier']})" if one["speedup"] else ""
    cells = {
        "this candidate": f"{one['id'][:6]}: {one['what']}",
        "outcome": f"{one['verdict'] or 'not judged yet'}{figures}",
        "step": f"{one['did']} ({one['action']})",
        "why": one["rationale"] or "–",
        "written by": one["coder"],
    }
    return str(cells[label])


def _split(named: str) -> tuple[str, str]:
    run, _, name = named.partition(":")
    return run, name


def _gain(line: Facts) -> str:
    return f"{line['speedup']:.2f}x " if line["speedup"] else f"{line['verdict'] or 'open'} "
