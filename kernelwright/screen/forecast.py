"""Says before a run what its model calls may cost: by its limits, and by what earlier runs with that model came to."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from agents.models.bills import Bill, total
from agents.models.calls import CallRecord
from agents.team.forecast import Forecast, forecast
from agents.team.settings import TeamSettings
from tools.errors import UserError
from tools.records import Budget
from tools.tracing import RunStore

LATEST = 20
"""Earlier runs that are looked at: a figure before a run must not keep it waiting."""


def forecast_notes(settings: TeamSettings, budget: Budget, home: Path) -> tuple[str, ...]:
    """Say it in a line or two; nothing where no model is asked."""
    if not settings.models():
        return ()
    names = {model.name for model in settings.models()}
    return (_by_limits(forecast(settings, budget), budget), *_by_record(earlier_bills(home, names), names))


def earlier_bills(home: Path, models: set[str]) -> list[Bill]:
    """What each of the latest runs that asked these models, and no others, paid its server; a run that cannot be read is passed over."""
    files = sorted((home / "runs").glob("*/run.db"), key=lambda path: path.stat().st_mtime, reverse=True)
    found = []
    for file in files[:LATEST]:
        try:
            calls = [CallRecord.model_validate_json(row.json) for row in RunStore(file.parent).call_rows()]
        except (UserError, ValueError):
            continue
        if calls and {call.model for call in calls} <= models:
            found.append(total(calls))
    return found


def _by_limits(expected: Forecast, budget: Budget) -> str:
    if not expected.calls:
        return "Without --budget nothing says how many model calls are made; --usd and --tokens limit them."
    roles = ", ".join(f"{role} {count}" for role, count in expected.calls.items())
    calls = f"Model calls: up to {sum(expected.calls.values())} ({roles}) if each evaluation takes one"
    if not expected.tokens:
        return f"{calls}; how long they may be has no limit."
    price = "at a price that is not known" if expected.usd is None else f"${expected.usd:.2f}"
    limits = "" if budget.money_usd or budget.tokens else " --usd and --tokens limit them."
    return f"{calls}. Each as long as it may be, they are {expected.tokens:,} tokens, {price}.{limits}"


def _by_record(bills: list[Bill], names: set[str]) -> tuple[str, ...]:
    if not bills:
        return ()
    tokens = median(one.input_tokens + one.output_tokens for one in bills)
    money = "" if any(one.unpriced for one in bills) else f" and ${median(one.usd for one in bills):.3f}"
    runs = "one earlier run" if len(bills) == 1 else f"{len(bills)} earlier runs"
    return (f"In {runs} here with {' and '.join(sorted(names))} they came to {tokens:,.0f} tokens{money}, in the median.",)
