"""Who plays which role: the registry of variants, and the team of one run."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from agents.coder.protocol import Coder
from agents.frame import Frame
from agents.models import (
    CallStore,
    ChatModel,
    Ensemble,
    Guard,
    MemoryCalls,
    Model,
    ModelSettings,
    PriceTable,
    Recording,
    Shared,
    check_model,
)
from agents.models.words import ROLES, Overrides, read_models, read_overrides
from agents.planner.protocol import Planner
from agents.profiler.protocol import Profiler
from agents.reviewer.protocol import Reviewer
from tools.errors import UserError
from tools.records import Budget, Record

BUILTIN = "builtin"

VARIANTS: dict[str, dict[str, str]] = {
    "planner": {BUILTIN: "agents.planner.builtin:BuiltinPlanner", "llm": "agents.planner.llm:LLMPlanner"},
    "coder": {
        BUILTIN: "agents.coder.builtin:BuiltinCoder",
        "llm": "agents.coder.llm:LLMCoder",
        "mixed": "agents.coder.mixed:MixedCoder",
    },
    "profiler": {BUILTIN: "agents.profiler.builtin:BuiltinProfiler", "llm": "agents.profiler.llm:LLMProfiler"},
    "reviewer": {BUILTIN: "agents.reviewer.builtin:BuiltinReviewer", "llm": "agents.reviewer.llm:LLMReviewer"},
}
"""Role to variant to dotted path. `builtin` is made without arguments, every other as `(model, the role's builtin, frame)`."""

WITH_MODEL = {"planner": "llm", "coder": "mixed", "profiler": "llm", "reviewer": "llm"}
"""What a user who names a model gets. The mixed coder does by construction what the built-in one can do, so that a call is paid only
for what it cannot."""


class TeamSettings(Record):
    """Which variant plays each role, and with which model."""

    model: ModelSettings | None = None
    """None: no language model, every role built-in."""
    roles: dict[str, str] = Field(default_factory=dict)
    """Variant by role, where it differs from what `model` implies."""
    role_models: dict[str, ModelSettings] = Field(default_factory=dict)
    """Model by role, instead of `model`."""
    others: tuple[ModelSettings, ...] = ()
    """Further models beside `model`: one is chosen for each question."""
    role_others: dict[str, tuple[ModelSettings, ...]] = Field(default_factory=dict)
    """Further models by role, beside the role's own."""
    cost_weight: float = Field(default=0.5, ge=0)
    """How much cost counts where one of several models is chosen: the power of the cost that success is divided by."""
    seed: int = 0
    """Of these choices."""
    frame: Frame = Frame()
    """What prompts are made for: language, length, what is shown to start from."""
    prices: str = ""
    """The user's own price table; its entries go before the ones that ship."""
    shared: str = ""
    """File of what runs share about models; empty: nothing is shared."""
    cache: bool = False
    """Whether answers are shared too: a question that any run asked is not asked again."""

    def variant(self, role: str) -> str:
        """Variant that plays `role`."""
        implied = "llm" if role == "coder" and self.frame.language != "triton" else WITH_MODEL[role]
        return self.roles.get(role) or (implied if self.model_of(role) else BUILTIN)

    def model_of(self, role: str) -> ModelSettings | None:
        """Model that `role` uses."""
        return self.role_models.get(role, self.model)

    def models_of(self, role: str) -> tuple[ModelSettings, ...]:
        """Every model that `role` chooses from; none where it is built-in."""
        first = self.model_of(role)
        if first is None or self.variant(role) == BUILTIN:
            return ()
        return (first, *(self.role_others.get(role, ()) if role in self.role_models else self.others))

    def models(self) -> tuple[ModelSettings, ...]:
        """Every model that some role may ask."""
        return tuple({one.model_dump_json(): one for role in VARIANTS for one in self.models_of(role)}.values())


@dataclass(frozen=True)
class AgentTeam:
    """The agents of one run."""

    planner: Planner
    coder: Coder
    profiler: Profiler
    reviewer: Reviewer
    models: tuple[ChatModel, ...] = ()
    """Whose connections are closed at the end."""
    chooses: bool = False
    """Whether some role has several models to choose from."""
    shared: Shared | None = None
    """What runs share about models; closed at the end."""

    def describe(self) -> str:
        """Say in one line who plays each role."""
        names = (self.planner.name, self.coder.name, self.profiler.name, self.reviewer.name)
        line = ", ".join(f"{role} {name}" for role, name in zip(VARIANTS, names, strict=True))
        return line if self.models else f"{line} (no language model)"

    async def close(self) -> None:
        """Close the models' connections."""
        for model in self.models:
            await model.close()
        if self.shared is not None:
            self.shared.close()


def build_team(
    settings: TeamSettings,
    calls: CallStore | None = None,
    guard: Guard | None = None,
    scope: str = "",
    *,
    recording: Recording | None = None,
) -> AgentTeam:
    """Make the agents; an unknown role or variant, or a variant that lacks its model, raises UserError.

    `calls` keeps every finished model call, `guard` is asked before each is made, `scope` keeps runs apart in a shared store; with a
    `recording` every answer comes from there and no server is asked.
    """
    check_team(settings)
    store = MemoryCalls() if calls is None else calls
    prices = price_table(settings)
    shared = Shared(Path(settings.shared), answers=settings.cache) if settings.shared else None
    made = {
        one.model_dump_json(): ChatModel(one, store, prices=prices, guard=guard, scope=scope, shared=shared, recording=recording)
        for one in settings.models()
    }
    agents: dict[str, Any] = {}
    chooses = False
    for role in VARIANTS:
        models = [made[one.model_dump_json()] for one in settings.models_of(role)]
        chooses = chooses or len(models) > 1
        if not models:
            agents[role] = _builtin(role)
            continue
        ensemble: Model = Ensemble(models, store, prices, seed=settings.seed, cost_weight=settings.cost_weight)
        agents[role] = _load(role, settings.variant(role))(ensemble if len(models) > 1 else models[0], _builtin(role), settings.frame)
    return AgentTeam(**agents, models=tuple(made.values()), chooses=chooses, shared=shared)


def price_table(settings: TeamSettings) -> PriceTable:
    """Read the prices that ship, and the user's own."""
    return PriceTable.load(Path(settings.prices) if settings.prices else None)


def check_team(settings: TeamSettings) -> None:
    """Refuse unknown roles and variants, and variants without the model they need."""
    for role in (*settings.roles, *settings.role_models):
        if role not in VARIANTS:
            raise UserError(f"There is no role called {role!r}.", f"Choose one of: {', '.join(VARIANTS)}.")
    for role, variants in VARIANTS.items():
        variant = settings.variant(role)
        if variant not in variants:
            raise UserError(f"There is no {role} called {variant!r}.", f"Choose one of: {', '.join(variants)}.")
        if variant != BUILTIN and settings.model_of(role) is None:
            raise UserError(f"The {role} {variant!r} needs a language model.", f"Name one with --model, or take {role}={BUILTIN}.")


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


def team_settings(
    model: str = "",
    base_url: str = "",
    roles: Sequence[str] = (),
    key_file: str = "",
    prices: str = "",
    model_set: Sequence[str] = (),
) -> TeamSettings:
    """Read the command line's words: models, their server, and `ROLE=VARIANT` or `ROLE=VARIANT:MODEL` for single roles.

    MODEL is `NAME` or `NAME@URL`; several, joined by commas, are an ensemble. `model_set` has `FIELD=VALUE` of ModelSettings, for all or
    for one role or model.
    """
    if (base_url or key_file) and not model and not any(":" in word for word in roles):
        raise UserError("A server is named, but no model.", "Add --model NAME; most servers list theirs at BASE_URL/models.")
    overrides = read_overrides(model_set)
    variants: dict[str, str] = {}
    models: dict[str, tuple[ModelSettings, ...]] = {}
    for word in roles:
        role, equals, rest = (part.strip() for part in word.partition("="))
        variant, _, own = rest.partition(":")
        if not equals or not variant:
            raise UserError(f"{word!r} does not name a role and its variant.", "Write it like coder=builtin or planner=llm:MODEL.")
        variants[role] = variant
        if own:
            models[role] = read_models(own, base_url, key_file, overrides, role)
    for role in VARIANTS:
        if role not in models and set(overrides.get(role, {})) - {"temperature"} and model:
            models[role] = read_models(model, base_url, key_file, overrides, role)
    every = read_models(model, base_url, key_file, overrides)
    _check_owners(overrides, [*every, *(one for some in models.values() for one in some)])
    made = TeamSettings(
        model=every[0] if every else None,
        others=every[1:],
        roles=variants,
        role_models={role: some[0] for role, some in models.items()},
        role_others={role: some[1:] for role, some in models.items() if some[1:]},
        prices=prices,
    )
    check_team(made)
    return made


def _check_owners(overrides: Overrides, models: Sequence[ModelSettings]) -> None:
    known = {"", *ROLES, *(one.name for one in models)}
    for owner in overrides:
        if owner not in known:
            raise UserError(f"A setting is for {owner!r}, which is neither a role nor a model of this run.", f"Roles: {', '.join(ROLES)}.")


def _load(role: str, variant: str) -> Any:
    module, _, name = VARIANTS[role][variant].partition(":")
    return getattr(importlib.import_module(module), name)


def _builtin(role: str) -> Any:
    return _load(role, BUILTIN)()
