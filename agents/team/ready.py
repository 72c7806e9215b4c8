"""What is looked at before a run: whether a limit of money can be held, and whether every model answers."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from agents.models import check_model
from agents.models.check import Looked
from agents.team.fitting import fitted
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


class Ready(NamedTuple):
    """A team that can be asked."""

    settings: TeamSettings
    """Prompts and replies fitted to what its models take."""
    notes: tuple[str, ...] = ()
    """What could not be found out, and what was shortened."""


def ready_models(settings: TeamSettings, budget: Budget) -> Ready:
    """Refuse a limit that cannot be held, then look whether every model can be asked, and how much it takes.

    Raises UserError for what would keep a run from its first answer. Not from within a running event loop.
    """
    check_prices(settings, budget)
    wanted = [one for one in settings.models() if one.check]
    if not wanted:
        return Ready(settings)

    async def look() -> list[Looked | BaseException]:
        return await asyncio.gather(*map(check_model, wanted), return_exceptions=True)

    found = asyncio.run(look())
    seen: dict[str, Looked] = {}
    for model, one in zip(wanted, found, strict=True):
        if isinstance(one, BaseException):
            raise one
        seen[model.model_dump_json()] = one
    team, shortened = fitted(settings, {name: one.context for name, one in seen.items()})
    return Ready(team, (*(one.note for one in seen.values() if one.note), *shortened))
