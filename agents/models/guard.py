"""Hard limits, checked before a call is made: what was spent, what the calls in flight may cost, and what this one may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from agents.models.deadline import time_left
from agents.models.messages import Message
from agents.models.prices import Price
from tools.records import Budget, Record, Spent

CHARACTERS_A_TOKEN = 3
"""Low on purpose: English text and code have about four, so a forecast errs on the side of the limit."""
LEAST_REPLY = 1024
"""Tokens: where a budget leaves no room for a reply of this length, or of the model's own limit if that is lower, no call is made."""


class Forecast(Record):
    """The most that calls not yet answered may cost, by an estimate of their length."""

    tokens: int = 0
    money_usd: float = 0.0
    """0 where the price is unknown: a money limit cannot hold what has no price."""

    def __add__(self, other: Forecast) -> Forecast:
        """Add up two calls."""
        return Forecast(tokens=self.tokens + other.tokens, money_usd=self.money_usd + other.money_usd)


class OverBudget(Exception):  # noqa: N818 - caught next door and told as BudgetReached
    """No reply of useful length fits into what is left; its argument names the limit."""


class Guard:
    """What the models of one run share: their calls in flight count against the budget together."""

    def __init__(self, budget: Budget, spent: Callable[[], Spent]) -> None:
        """Hold `budget`; `spent` says what has been used so far."""
        self._budget = budget
        self._spent = spent
        self._ahead: dict[object, Forecast] = {}
        self._changed: list[asyncio.Event] = []

    def time_left(self) -> float | None:
        """Seconds of wall time that a call may take; None where no limit is set."""
        return time_left(self._budget, self._spent())

    @asynccontextmanager
    async def reserve(self, sent_tokens: int, wanted: int, price: Price | None) -> AsyncIterator[int]:
        """Reserve a call for as long as it lasts; yield the output limit it may have, 0 for none.

        A reply is cut to what the budget leaves, not refused. What is left while other calls are in flight may be less than what is
        left after them: then this one waits for one of them. Raises OverBudget where it could not be paid even so.
        """
        while True:
            allowed, limit = self._allowed(sent_tokens, wanted, price)
            if not limit:
                break
            if not self._ahead:
                raise OverBudget(limit)
            changed = asyncio.Event()
            self._changed.append(changed)
            await changed.wait()
        call = object()
        self._ahead[call] = cost_ahead(sent_tokens, allowed, price)
        try:
            yield allowed
        finally:
            del self._ahead[call]
            changed_now, self._changed = self._changed, []
            for event in changed_now:
                event.set()

    def _allowed(self, sent: int, wanted: int, price: Price | None) -> tuple[int, str]:
        """The output limit that fits, and the name of the budget that leaves too little; both limits at once hold the lower."""
        used, ahead = self._spent(), sum(self._ahead.values(), Forecast())
        least = min(wanted, LEAST_REPLY) if wanted else LEAST_REPLY
        allowed, rooms = wanted, []
        if self._budget.tokens:
            rooms.append(("tokens", self._budget.tokens - used.tokens - ahead.tokens - sent))
        if self._budget.money_usd and price is not None:
            left = (self._budget.money_usd - used.money_usd - ahead.money_usd) * 1e6 - sent * price.input
            if left < 0 or price.output:
                rooms.append(("money_usd", int(left / price.output) if left >= 0 else -1))
        for name, room in rooms:
            if room < least:
                return 0, name
            allowed = min(allowed, room) if allowed else room
        return allowed, ""


def tokens_of(messages: Iterable[Message]) -> int:
    """Estimate what a prompt may count for, on the side of too many."""
    return sum(len(m.content) + sum(len(one.arguments) for one in m.calls) for m in messages) // CHARACTERS_A_TOKEN + 1


def cost_ahead(sent_tokens: int, reply_tokens: int, price: Price | None) -> Forecast:
    """The most that one call may use: its text, and a reply of full length."""
    money = 0.0 if price is None else (sent_tokens * price.input + reply_tokens * price.output) / 1e6
    return Forecast(tokens=sent_tokens + reply_tokens, money_usd=money)


def budget_guard(budget: Budget, spent: Callable[[], Spent]) -> Guard:
    """Make a guard of a run's budget: `spent` says what has been used so far."""
    return Guard(budget, spent)
