"""Gathers what is known of a run and writes it as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from graphs.optimize.evidence import evidence_folder
from graphs.run.settings import settings_of
from kernelwright.screen.chain import chain, champion, gain_in_words
from kernelwright.screen.facts import candidate_facts, tree_facts
from kernelwright.screen.report.chart import Point, gain_chart
from kernelwright.screen.summary import summary_lines
from kernelwright.screen.trace_views import evaluation_rows
from kernelwright.screen.words import SURE, VERDICTS, candidate_in_words, time_in_words
from tools.evidence.manifest import digest_of
from tools.logs import printable
from tools.records import Evaluation, Tier, Verdict
from tools.tracing import RunStore
from tools.tracing.secrets import without_secrets
from tools.version import VERSION

Facts = dict[str, Any]
DETAILED = 300
"""Candidates that are shown whole, those on the way to the best first; of others there is a line."""


def write_report(store: RunStore, out: Path) -> None:
    """Write the report of a run to `out`, without keys and what looks like one."""
    out.write_text(without_secrets(render(report_facts(store))), encoding="utf-8")


def report_facts(store: RunStore, detailed: int = DETAILED) -> Facts:
    """Everything on the page, as plain values, with at most `detailed` candidates shown whole."""
    tree = tree_facts(store)
    best, steps = champion(tree), chain(tree)
    estimated = best is not None and best["tier"] == Tier.ESTIMATED
    points = points_of(store, estimated=estimated)
    settings = settings_of(store)
    bundle = evidence_folder(store.folder, best["id"]) if best else store.folder / "evidence"
    return {
        "version": VERSION,
        "tree": tree,
        "best": best,
        "sure": SURE[Tier(best["tier"])] if best and best["tier"] else "",
        "summary": list(summary_lines(tree)),
        "steps": steps,
        "chart": gain_chart(points, f"Best gain so far, {'estimated' if estimated else 'measured'}"),
        "estimated": estimated,
        "candidates": _details(store, tree, [step["id"] for step in steps], detailed),
        "kernel": store.source(best["id"]) if best else "",
        "digest": digest_of(bundle) if bundle.is_dir() else "",
        "setup": {"search": settings.search, "budget": settings.budget.model_dump(), "memory": settings.memory, "floor": settings.floor},
    }


def points_of(store: RunStore, *, estimated: bool) -> list[Point]:
    """Evaluations in their order; a gain of the other kind, measured or estimated, is not drawn."""
    points: list[Point] = []
    for number, one in enumerate(store.all("evaluation", Evaluation).values(), 1):
        candidate = store.candidate(one.candidate)
        drawn = one.speedup if one.tier and (one.tier is Tier.ESTIMATED) == estimated else None
        figure = f", {drawn:.2f}x" if drawn else ""
        what = candidate_in_words(candidate, one) if candidate else one.candidate
        points.append(Point(number, drawn, f"{one.candidate[:6]} {VERDICTS[one.verdict]}{figure}: {what}"))
    return points


def _details(store: RunStore, tree: Facts, first: list[str], detailed: int) -> list[Facts]:
    """Lines of all candidates; with source, difference and evaluations of those that are shown whole."""
    rank = {name: place for place, name in enumerate(first)}
    whole = set(sorted((line["id"] for line in tree["candidates"]), key=lambda name: rank.get(name, len(rank)))[:detailed])
    return [_detail(store, line) if line["id"] in whole else {**line, "whole": False} for line in tree["candidates"]]


def _detail(store: RunStore, line: Facts) -> Facts:
    facts = candidate_facts(store, line["id"])
    return {**line, **facts, "trials": line["trials"], "whole": True, "source": store.source(line["id"])}


def render(facts: Facts) -> str:
    """Fill the page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "printable": printable,
        "verdict": lambda verdict: VERDICTS[Verdict(verdict)] if verdict else "not judged",
        "gained": gain_in_words,
        "timed": lambda line: time_in_words(line["time_us"], Tier(line["tier"])) if line["time_us"] else "",
        "rows": lambda evaluation: list(evaluation_rows(evaluation)),
        "kind": lambda line: "add" if line.startswith("+") else "del" if line.startswith("-") else "meta" if line.startswith("@@") else "",
    }
    return environment.get_template("page.j2").render(facts)
