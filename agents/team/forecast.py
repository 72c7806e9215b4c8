"""What a run's model calls may come to, before the first one is made."""

from __future__ import annotations

from pydantic import Field

from agents.team.fitting import ASKS_AS
from agents.team.settings import VARIANTS, TeamSettings, price_table
from tools.records import Budget, Record


class Forecast(Record):
    """What model calls come to if every evaluation takes one of each role, as long as it may be."""

    calls: dict[str, int] = Field(default_factory=dict)
    """By role; empty where no model is asked, or nothing bounds the evaluations."""
    tokens: int = 0
    """Prompts and replies together, each as long as is allowed; 0 where a length has no limit."""
    usd: float | None = None
    """At the price of the dearest model of each role; None where a price or a length is not known."""


def forecast(settings: TeamSettings, budget: Budget) -> Forecast:
    """Count a call of each role for each evaluation, and of a coder with tools as many more; one that is asked again is not counted."""
    turns = {role: 1 + settings.frame.tools if role == "coder" else 1 for role in VARIANTS if settings.models_of(role)}
    calls = {role: budget.evaluations * asked for role, asked in turns.items() if budget.evaluations}
    lengths = {role: (_prompt(settings, role), _reply(settings, role)) for role in calls}
    if not calls or not all(all(pair) for pair in lengths.values()):
        return Forecast(calls=calls)
    dearest = {role: _dearest(settings, role, *lengths[role]) for role in calls}
    known = [price * calls[role] for role, price in dearest.items() if price is not None]
    return Forecast(
        calls=calls,
        tokens=sum(count * sum(lengths[role]) for role, count in calls.items()),
        usd=sum(known) if len(known) == len(calls) else None,
    )


def _prompt(settings: TeamSettings, role: str) -> int:
    limits = [settings.frame.context(name) for name in ASKS_AS[role]]
    return max(limits) if all(limits) else 0


def _reply(settings: TeamSettings, role: str) -> int:
    limits = [model.max_output_tokens for model in settings.models_of(role)]
    return max(limits) if all(limits) else 0


def _dearest(settings: TeamSettings, role: str, prompt: int, reply: int) -> float | None:
    table = price_table(settings)
    prices = [table.price(model.name) for model in settings.models_of(role)]
    known = [(prompt * one.input + reply * one.output) / 1e6 for one in prices if one is not None]
    return max(known) if len(known) == len(prices) else None
