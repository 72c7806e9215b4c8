"""Writes the report of the work on a model: Markdown, its facts as JSON, and one HTML page with plots that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kernelwright.models.pictures import pictures_of
from kernelwright.models.proving import brought
from kernelwright.models.records import Outcome
from kernelwright.models.report import (
    BEST_HEAD,
    FACTS,
    OUTPUT_HEAD,
    PAGE,
    REPORT,
    best_ways,
    beyond_words,
    estimate_words,
    left_alone,
    medians,
    not_chosen,
    operator_rows,
    output_rows,
    parted,
    report_text,
    summary,
    time_rows,
    times_words,
)
from tools.logs import printable
from tools.tracing.secrets import without_secrets
from tools.version import VERSION

AMDAHL = ("operator", "share", "µs a call", "µs at best", "model at best", "by itself", "brings the model", "in the package")


def write_report(outcome: Outcome, folder: Path) -> None:
    """Write `report.md`, `report.html` and `report.json`."""
    (folder / FACTS).write_text(outcome.model_dump_json(indent=1) + "\n")
    (folder / REPORT).write_text(report_text(outcome))
    (folder / PAGE).write_text(page_text(outcome), encoding="utf-8")


def page_text(outcome: Outcome) -> str:
    """Fill the page, without keys and what looks like one."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["printable"] = printable
    return without_secrets(environment.get_template("page.j2").render(page_facts(outcome)))


def page_facts(outcome: Outcome) -> dict[str, Any]:
    """Everything on the page."""
    return {
        "version": VERSION,
        "outcome": outcome,
        "summary": summary(outcome),
        "pictures": pictures_of(outcome),
        "amdahl": {"head": AMDAHL, "rows": amdahl_rows(outcome)},
        "amdahl_words": amdahl_words(outcome),
        "estimated": estimate_words(outcome),
        "not_chosen": not_chosen(outcome.chosen),
        "parted": parted(outcome.capture),
        "left": {"head": ("module", "share", "because"), "rows": left_alone(outcome.capture)},
        "made": {"head": ("operator", "by itself", "in the package", "what its run said"), "rows": operator_rows(outcome)},
        "outputs": {"head": OUTPUT_HEAD, "rows": output_rows(outcome)},
        "ratios": {"head": ("", "speed-up", "95 % interval"), "rows": time_rows(outcome)},
        "best": {"head": BEST_HEAD, "rows": best_ways(outcome)},
        "times": {"head": ("way", "workload", "median µs"), "rows": medians(outcome)},
    }


def amdahl_words(outcome: Outcome) -> str:
    """Say what the columns of that table mean."""
    return (
        f"µs a call: {times_words(outcome.chosen, outcome.target)}. µs at best: what one launch could take. "
        f"Model at best: its speed-up if the calls took that{beyond_words(outcome.chosen)}. By itself: the operator's speed-up. "
        "Brings the model: what it loses where the operator is taken out, if it was timed, in the way that is fastest."
    )


def amdahl_rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """Set what Amdahl's law promised of each operator beside what came of it."""
    made = {one.name: one for one in outcome.operators}
    gains = brought(outcome, [one.name for one in outcome.operators if one.kept])
    rows: list[tuple[str, ...]] = []
    for row in outcome.chosen:
        one, gain = made.get(row.group), gains.get(row.group)
        if not (row.budget or one):
            continue
        rows.append(
            (
                f"{row.group} (one shape)" if row.apart else row.group,
                f"{row.share:.1%}",
                f"{row.eager_us or row.us:.1f}",
                f"{row.reach_us:.1f}",
                f"{row.gain:.2f}x",
                f"{one.speedup:.2f}x ({one.tier})" if one and one.delivered else "–",
                f"{gain.value:.3f}x [{gain.low:.3f}, {gain.high:.3f}]" if gain else "–",
                "yes" if one and one.kept else "no",
            )
        )
    return rows
