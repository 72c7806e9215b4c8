"""Surveys: every step that a parent offers, rated by the run's planner, kept in the run's store."""

from __future__ import annotations

from agents.planner.rating import rate
from graphs.optimize.briefing import brief, recalled_for
from graphs.run.context import Services
from graphs.search.archive import Offer
from graphs.search.protocol import Ask, Survey
from tools.records import Record


class Surveyed(Record):
    """Every step that a parent offered when it was last looked at."""

    round: int
    offers: tuple[Offer, ...]
    rated: bool = True
    """Whether the run's planner was asked; else the scores are the built-in prior."""


async def make_survey(services: Services, survey: Survey, round_: int) -> None:
    """List and rate what can be done to a parent, unless this round has done so."""
    known = services.store.get("survey", survey.parent, Surveyed)
    if known is not None and known.round == round_ and (known.rated or not survey.rated):
        return
    await recalled_for(services, survey.parent, round_)
    ratings = await rate(services.team.planner, await brief(services, Ask(parent=survey.parent), round_), ask=survey.rated)
    offers = tuple(Offer(**rating.model_dump(exclude={"action"}), action=rating.action) for rating in ratings)
    services.store.put("survey", survey.parent, Surveyed(round=round_, offers=offers, rated=survey.rated), subject=survey.parent)
