"""Several models for one role: for each question a bandit chooses by what each has achieved in this run, and at what cost.

Thompson sampling: a model's rate of success is drawn from the Beta distribution of its record, and divided by a power of what it costs. The
draws come from the seed and the question, and the record only changes between rounds, so the choice does not depend on which of
several questions at once is asked first.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

from pydantic import BaseModel, Field

from agents.models.calls import CallStore
from agents.models.chat import ChatModel
from agents.models.errors import ModelUnavailable
from agents.models.messages import Answer, Message, ToolSpec
from agents.models.prices import PriceTable
from tools.errors import UserError
from tools.records import Record, content_hash

CHOICE = "model_choice"
SCORES = "model_scores"
LATEST = "latest"
USUAL = (4000, 1500)
"""Tokens of a question and its answer: what a model that was not asked yet is assumed to use, to be known by its price alone."""
LEAST_SHARE = 0.02
"""Of the dearest model's cost: below it cheaper is no better, so that a model without price does not win by that alone."""


class Arm(Record):
    """What one model has achieved in one role."""

    tries: int = 0
    successes: int = 0
    """Planner: plans whose candidate was accepted. Coder and repairer: plans that ended with a passing candidate. Profiler and
    reviewer: answers that held."""
    usd: float | None = 0.0
    """None where a price is unknown."""
    tokens: int = 0


class ModelScores(Record):
    """Every model's record in every role, as of the end of a round."""

    arms: dict[str, dict[str, Arm]] = Field(default_factory=dict)
    """By role, then by model."""

    def arm(self, role: str, model: str) -> Arm:
        """Record of a model; an empty one where it was never asked."""
        return self.arms.get(role, {}).get(model, Arm())


class Choice(Record):
    """Which model was asked, and why."""

    role: str
    purpose: str
    model: str
    why: str


class Ensemble:
    """Asks one of its models; where that one is unavailable, the next best."""

    def __init__(
        self, models: Sequence[ChatModel], calls: CallStore, prices: PriceTable, *, seed: int = 0, cost_weight: float = 0.5
    ) -> None:
        """Choose among `models`; `cost_weight` is the power of the cost that a success is divided by, 0 for success alone."""
        self.models = tuple(models)
        self.name = "|".join(model.name for model in models)
        self._calls = calls
        self._prices = prices
        self._seed = seed
        self._weight = cost_weight

    async def ask(
        self, role: str, messages: list[Message] | tuple[Message, ...], schema: type[BaseModel] | None = None, *, purpose: str = ""
    ) -> Answer:
        """Choose a model and put the question to it; what only one of several models cannot do is another's to answer."""
        return await self._first(role, purpose, lambda model: model.ask(role, messages, schema, purpose=purpose))

    async def ask_with_tools(
        self, role: str, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...], *, may_call: bool = True, purpose: str = ""
    ) -> Answer:
        """Choose a model, the same in each turn of one purpose, and let it call tools."""
        return await self._first(
            role, purpose, lambda model: model.ask_with_tools(role, messages, tools, may_call=may_call, purpose=purpose)
        )  # fmt: skip

    async def ask_odds(self, role: str, messages: tuple[Message, ...], *, purpose: str = "") -> Answer:
        """Choose a model and read its log-probabilities; empty where the chosen one gives none."""
        return await self._first(role, purpose, lambda model: model.ask_odds(role, messages, purpose=purpose))

    async def _first(self, role: str, purpose: str, ask: Callable[[ChatModel], Awaitable[Answer]]) -> Answer:
        """Ask the best model that is available."""
        failed: list[str] = []
        for model, why in self.ranking(role, purpose):
            said = f"{why} {' '.join(failed)}".strip()
            self._calls.put(CHOICE, f"{role} {purpose}", Choice(role=role, purpose=purpose, model=model.name, why=said))
            try:
                answer = await ask(model)
            except (ModelUnavailable, UserError) as error:
                failed.append(error.what)
                last = error
                continue
            return answer.model_copy(update={"notes": (*answer.notes, *failed)})
        raise last

    async def close(self) -> None:
        """Close every model's connections."""
        for model in self.models:
            await model.close()

    def ranking(self, role: str, purpose: str) -> list[tuple[ChatModel, str]]:
        """Every model with why it stands where it stands, best first."""
        scores = self._calls.get(SCORES, LATEST, ModelScores) or ModelScores()
        costs, unit = self._costs(role, scores)
        dearest = max(costs.values()) or 1.0
        rated: list[tuple[float, ChatModel, str]] = []
        for model in self.models:
            arm, cost = scores.arm(role, model.name), costs[model.name]
            draw = random.Random(content_hash(str(self._seed), role, purpose, model.name)).betavariate(  # noqa: S311 - no secret
                1 + arm.successes, 1 + arm.tries - arm.successes
            )
            worth = draw / max(cost / dearest, LEAST_SHARE) ** self._weight
            why = f"{model.name}: {arm.successes} of {arm.tries} succeeded, drawn {draw:.2f}, {cost:.4g} {unit} each, worth {worth:.2f}."
            rated.append((worth, model, why))
        rated.sort(key=lambda one: -one[0])
        others = " ".join(why for _, _, why in rated[1:])
        return [(model, f"{why} Against {others}" if place == 0 else why) for place, (_, model, why) in enumerate(rated)]

    def _costs(self, role: str, scores: ModelScores) -> tuple[dict[str, float], str]:
        """What a question costs at each model: in money where every price is known, else in tokens."""
        arms = {model.name: scores.arm(role, model.name) for model in self.models}
        prices = {name: self._prices.price(name) for name in arms}
        if all(prices.values()):
            usual = {n: (USUAL[0] * p.input + USUAL[1] * p.output) / 1e6 for n, p in prices.items() if p}
            return {n: a.usd / a.tries if a.tries and a.usd is not None else usual[n] for n, a in arms.items()}, "USD"
        seen = [a.tokens / a.tries for a in arms.values() if a.tries]
        guess = sum(seen) / len(seen) if seen else float(sum(USUAL))
        return {n: a.tokens / a.tries if a.tries else guess for n, a in arms.items()}, "tokens"
