"""Weighing a finite list of next steps: by a language model's token probabilities where its server gives them, else by its ranking."""

from __future__ import annotations

import math
import string
from typing import Literal, Protocol, runtime_checkable

from pydantic import BaseModel, Field

from agents.models import Message, Model
from agents.models.request import ALTERNATIVES
from agents.planner.protocol import Briefing
from tools.records import Action, Record

LETTERS = string.ascii_uppercase[:ALTERNATIVES]
"""Labels of choices, one token each; no more choices are put than a server gives alternatives for."""
RANK_STEP = 0.5
"""Lost with each place of a ranking, which has no probabilities: the same as where plans are rated by their order."""


class Step(Record):
    """One step of the episode so far."""

    group: str
    reward: float


class WeighCase(Record):
    """All that a planner sees when it is to weigh."""

    name: str
    """Of this weighing within the run."""
    briefing: Briefing
    groups: tuple[str, ...]
    """What may be chosen: `tiling r0`, or `stop`. The most promising by the built-in prior first."""
    actions: tuple[Action | None, ...]
    """What would be done for each; None for `stop`."""
    history: tuple[Step, ...]
    """Last steps of the episode, the oldest first."""


class Weights(Record):
    """What came of asking; without scores nobody was asked, or nothing could be read."""

    scores: dict[str, float] = Field(default_factory=dict)
    """By group: the logarithm of its probability, up to a constant. What was not put to the model is missing."""
    by: Literal["", "log-probabilities", "ranking"] = ""
    model: str = ""
    reason: str = ""
    """Why there are no log-probabilities, or nothing at all."""


@runtime_checkable
class Weigher(Protocol):
    """A planner that can weigh choices; the built-in one's ratings stand for themselves."""

    async def weigh(self, case: WeighCase) -> Weights:
        """Score the choices."""


class Ranking(BaseModel):
    """The model's answer where probabilities cannot be had."""

    ranking: list[str] = Field(description="Letters, the most promising first")


async def ask_weights(model: Model, messages: tuple[Message, ...], ranking: tuple[Message, ...], case: WeighCase) -> Weights:
    """Ask for one letter and read its probability beside the others'; where a server gives none, ask for a ranking."""
    purpose = f"weigh {case.briefing.parent} {case.name}"
    letters = LETTERS[: len(case.groups)]
    answer = await model.ask_odds("planner", messages, purpose=purpose)
    scores = spread(answer.odds, letters)
    if scores:
        by_group = {group: scores[letter] for group, letter in zip(case.groups, letters, strict=False)}
        return Weights(scores=by_group, by="log-probabilities", model=answer.model)
    why = "the first token was none of the letters" if answer.odds else "its server gives no log-probabilities"
    ranked = await model.ask("planner", ranking, Ranking, purpose=f"{purpose} ranking")
    said = ranked.parsed.ranking if isinstance(ranked.parsed, Ranking) else []
    order = list(dict.fromkeys(letter for word in said if (letter := word.strip().upper()[:1]) and letter in letters))
    if not order:
        return Weights(model=ranked.model, reason=f"{why}, and no ranking could be read ({ranked.complaint or 'it named no letter'})")
    places = [*order, *(letter for letter in letters if letter not in order)]
    scores = {letter: -RANK_STEP * place for place, letter in enumerate(places)}
    by_group = {group: scores[letter] for group, letter in zip(case.groups, letters, strict=False)}
    return Weights(scores=by_group, by="ranking", model=ranked.model, reason=why)


def spread(odds: dict[str, float], letters: str) -> dict[str, float]:
    """Give every letter its log-probability; empty where none was among the alternatives.

    What is left of the whole is shared by the letters that were not among them, each at most as likely as the unlikeliest alternative.
    """
    known = {letter: odds[letter] for letter in letters if letter in odds}
    missing = [letter for letter in letters if letter not in known]
    if not known:
        return {}
    rest = max(1.0 - sum(math.exp(value) for value in odds.values()), 1e-9) / max(len(missing), 1)
    least = min(*odds.values(), math.log(rest))
    return {letter: round(known.get(letter, least), 6) for letter in letters}
