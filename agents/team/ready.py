"""What is looked at before a run: whether a limit of money can be held, and whether every model answers."""

from __future__ import annotations

import asyncio

from agents.models import check_model
from agents.team.settings import TeamSettings, price_table
from tools.errors import UserError
from tools.records import Budget


def check_prices(settings: TeamSettings, budget: Budget) -> None:
    """Refuse a limit of money that a model without a known price could not be held to."""
    prices = price_table(settings)
    unknown = [one.name for one in settings.models() if prices.price(one.name) is None]
    if budget.money_usd and unknown:
        raise UserError(
            f"A limit of {budget.money_usd:g} USD cannot be held: the price of {', '.join(unknown)} is not known.",
            "Give it with --prices FILE (0 for a server of your own), or limit --tokens instead.",
        )


def ready_models(settings: TeamSettings, budget: Budget) -> tuple[str, ...]:
    """Refuse a limit that cannot be held, then look whether every model can be asked; return what could not be found out.

    Raises UserError for what would keep a run from its first answer. Not from within a running event loop.
    """
    check_prices(settings, budget)
    wanted = [one for one in settings.models() if one.check]
    if not wanted:
        return ()

    async def look() -> list[str | BaseException]:
        return await asyncio.gather(*map(check_model, wanted), return_exceptions=True)

    found = asyncio.run(look())
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return tuple(str(one) for one in found if one)
