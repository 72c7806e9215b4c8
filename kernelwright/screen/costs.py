"""Shows where a run's wall time went, what its model calls came to, and which model was chosen why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tools.records import PART, Evaluation
from tools.tracing import RunStore
from tools.tracing.work import Share

Facts = dict[str, Any]

_WAITING = ("place", "queue")
_LEAST_S = 0.1
"""What is less is not worth a word."""


def cost_facts(store: RunStore) -> Facts:
    """The bills as plain values, with the calls that led to nothing and what servers lack."""
    from agents.models import Findings, Trouble
    from graphs.optimize.costs import costs
    from graphs.optimize.wall import wall

    judged = list(store.all("evaluation", Evaluation).values())
    spent = wall(store)
    asked = spent.shares.get("evaluation", Share(wall_s=0.0, busy_s=0.0))
    return {
        "wall": spent.model_dump(mode="json"),
        "evaluations": {
            "count": len(judged),
            "gpu_seconds": sum(one.gpu_seconds for one in judged),
            "place_seconds": sum(one.phase_seconds.get("place", 0.0) for one in judged),
            "queue_seconds": sum(one.phase_seconds.get("queue", 0.0) for one in judged),
            "seconds": sum(one.seconds for one in judged),
            "outside_seconds": max(0.0, asked.busy_s - sum(one.seconds for one in judged)),
            "phases": _phases(judged),
        },
        **costs(store).model_dump(mode="json"),
        "failed": [one.model_dump(mode="json") for one in store.all("trouble", Trouble).values()],
        "findings": [one.model_dump(mode="json") for one in store.all("findings", Findings).values()],
    }


def show_costs(facts: Facts) -> None:
    """Print a table for each grouping, then choices, failures and findings."""
    console = Console()
    if facts["wall"]["seconds"]:
        _show_wall(console, facts["wall"])
    if not facts["run"]["calls"]:
        console.print("no model calls")
    for name in ("roles", "models", "plans", "candidates") if facts["run"]["calls"] else ():
        table = Table(name[:-1], "calls", "input", "cached", "output", "reasoning", "USD", box=None)
        for key, bill in facts[name].items():
            table.add_row(escape(key), *_cells(bill))
        table.add_row("all", *_cells(facts["run"]), end_section=True)
        console.print(table)
    judged = facts["evaluations"]
    console.print(_evaluations(judged), highlight=False)
    for one in facts["choices"]:
        console.print(escape(f"{one['role']} {one['purpose']}: {one['model']}. {one['why']}"), highlight=False)
    for one in facts["failed"]:
        console.print(escape(f"failed: {one['role']} {one['purpose']}: {one['what']}"), highlight=False)
    for one in facts["findings"]:
        console.print(escape(f"{one['model']} at {one['server']} lacks {', '.join(one['lacks'])}"), highlight=False)


def _show_wall(console: Console, wall: Facts) -> None:
    """Print what the wall time went to, the most first."""
    table = Table("wall time", "seconds", "share", "busy", box=None)
    for name, share in sorted(wall["shares"].items(), key=lambda item: -item[1]["wall_s"]):
        part = share["wall_s"] / wall["seconds"] if wall["seconds"] else 0.0
        table.add_row(name, f"{share['wall_s']:.1f}", f"{part:.0%}", f"{share['busy_s']:.1f}" if share["busy_s"] else "")
    table.add_row("all", f"{wall['seconds']:.1f}", "", "", end_section=True)
    console.print(table)


def _evaluations(judged: Facts) -> str:
    """Say what evaluations took, so that what is named adds up to all of it."""
    waited = {"place": "for a place among those judged at once", "queue": "for turns on the device"}
    parts = [f"{judged[f'{name}_seconds']:.1f} s waiting {what}" for name, what in waited.items()]
    phases = {name: seconds for name, seconds in judged["phases"].items() if PART not in name}
    for name, seconds in phases.items():
        within = [f"{what.removeprefix(name + PART)} {part:.1f}" for what, part in judged["phases"].items() if what.startswith(name + PART)]
        parts.append(f"{name} {seconds:.1f} s" + (f" ({', '.join(within)})" if within else ""))
    rest = judged["seconds"] - judged["place_seconds"] - judged["queue_seconds"] - sum(phases.values())
    parts += [f"other {rest:.1f} s"] if rest >= _LEAST_S else []
    outside = judged["outside_seconds"]
    beside = f"; {outside:.1f} s more until answers were here" if outside >= _LEAST_S else ""
    return f"{judged['count']} evaluations: {judged['seconds']:.1f} s ({', '.join(parts)}), {judged['gpu_seconds']:.0f} s of a GPU{beside}"


def _phases(judged: Sequence[Evaluation]) -> dict[str, float]:
    """Seconds of each phase of the evaluations together."""
    names = dict.fromkeys(name for one in judged for name in one.phase_seconds)
    return {name: sum(one.phase_seconds.get(name, 0.0) for one in judged) for name in names if name not in _WAITING}


def _cells(bill: Facts) -> tuple[str, ...]:
    counts = (bill["calls"], bill["input_tokens"], bill["cached_tokens"], bill["output_tokens"], bill["reasoning_tokens"])
    return (*(_count(count) for count in counts), _money(bill))


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _money(bill: Facts) -> str:
    known = f"{bill['usd']:.4f}"
    if not bill["unpriced"]:
        return known
    return "unknown" if bill["unpriced"] >= bill["calls"] else f"{known} and {_count(bill['unpriced'])} calls of unknown price"
