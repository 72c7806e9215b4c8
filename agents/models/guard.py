"""Hard limits, checked before a call is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from agents.models.messages import Message
from agents.models.prices import PriceTable
from tools.records import Budget, Record, Spent

CHARACTERS_A_TOKEN = 3
"""Low on purpose: English text and code have about four, so a forecast errs on the side of the limit."""


class Forecast(Record):
    """The most that calls not yet answered may cost, by an estimate of their length."""

    tokens: int = 0
    money_usd: float = 0.0
    """0 where the price is unknown: a money limit cannot hold what has no price."""

    def __add__(self, other: Forecast) -> Forecast:
        """Add up two calls."""
        return Forecast(tokens=self.tokens + other.tokens, money_usd=self.money_usd + other.money_usd)


Guard: TypeAlias = Callable[[Forecast], str | None]
"""Names the limit that the forecast could exceed, or returns None."""


def forecast(messages: Iterable[Message], max_output_tokens: int, model: str, prices: PriceTable) -> Forecast:
    """Estimate the most that one call may use: its text, and a reply of full length."""
    sent = sum(len(m.content) for m in messages) // CHARACTERS_A_TOKEN + 1
    price = prices.price(model)
    money = 0.0 if price is None else (sent * price.input + max_output_tokens * price.output) / 1e6
    return Forecast(tokens=sent + max_output_tokens, money_usd=money)


def budget_guard(budget: Budget, spent: Callable[[], Spent]) -> Guard:
    """Make a guard of a run's budget: `spent` says what has been used so far."""

    def check(ahead: Forecast) -> str | None:
        used = spent()
        if budget.tokens and used.tokens + ahead.tokens > budget.tokens:
            return "tokens"
        if budget.money_usd and used.money_usd + ahead.money_usd > budget.money_usd:
            return "money_usd"
        return None

    return check
