"""Who plays which role: the registry of variants, and the team of one run."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from agents.coder.protocol import Coder
from agents.models import CallStore, ChatModel, Guard, MemoryCalls, ModelSettings, PriceTable
from agents.planner.protocol import Planner
from agents.profiler.protocol import Profiler
from agents.reviewer.protocol import Reviewer
from tools.errors import UserError
from tools.records import Record

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
"""Role to variant to dotted path. `builtin` is made without arguments, every other as `(model, the role's builtin)`."""

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
    prices: str = ""
    """The user's own price table; its entries go before the ones that ship."""

    def variant(self, role: str) -> str:
        """Variant that plays `role`."""
        return self.roles.get(role) or (WITH_MODEL[role] if self.model_of(role) else BUILTIN)

    def model_of(self, role: str) -> ModelSettings | None:
        """Model that `role` uses."""
        return self.role_models.get(role, self.model)


@dataclass(frozen=True)
class AgentTeam:
    """The agents of one run."""

    planner: Planner
    coder: Coder
    profiler: Profiler
    reviewer: Reviewer
    models: tuple[ChatModel, ...] = ()
    """Whose connections are closed at the end."""

    def describe(self) -> str:
        """Say in one line who plays each role."""
        names = (self.planner.name, self.coder.name, self.profiler.name, self.reviewer.name)
        line = ", ".join(f"{role} {name}" for role, name in zip(VARIANTS, names, strict=True))
        return line if self.models else f"{line} (no language model)"

    async def close(self) -> None:
        """Close the models' connections."""
        for model in self.models:
            await model.close()


def build_team(settings: TeamSettings, calls: CallStore | None = None, guard: Guard | None = None, scope: str = "") -> AgentTeam:
    """Make the agents; an unknown role or variant, or a variant that lacks its model, raises UserError.

    `calls` keeps every finished model call, `guard` is asked before each is made, `scope` keeps runs apart in a shared store.
    """
    check_team(settings)
    store = MemoryCalls() if calls is None else calls
    prices = PriceTable.load(Path(settings.prices) if settings.prices else None)
    made: dict[str, ChatModel] = {}
    agents: dict[str, Any] = {}
    for role in VARIANTS:
        wanted = settings.model_of(role)
        if wanted is None or settings.variant(role) == BUILTIN:
            agents[role] = _builtin(role)
            continue
        name = wanted.model_dump_json()
        made.setdefault(name, ChatModel(wanted, store, prices=prices, guard=guard, scope=scope))
        agents[role] = _load(role, settings.variant(role))(made[name], _builtin(role))
    return AgentTeam(**agents, models=tuple(made.values()))


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


def team_settings(model: str = "", base_url: str = "", roles: Sequence[str] = (), key_file: str = "", prices: str = "") -> TeamSettings:
    """Read the command line's words: a model, its server, and `ROLE=VARIANT` or `ROLE=VARIANT:MODEL` for single roles."""
    if (base_url or key_file) and not model and not any(":" in word for word in roles):
        raise UserError("A server is named, but no model.", "Add --model NAME; most servers list theirs at BASE_URL/models.")

    def settings_of(name: str) -> ModelSettings:
        return ModelSettings(name=name, base_url=base_url or None, key_file=key_file or None)

    variants: dict[str, str] = {}
    models: dict[str, ModelSettings] = {}
    for word in roles:
        role, equals, rest = word.partition("=")
        variant, _, own_model = rest.partition(":")
        if not equals or not variant:
            raise UserError(f"{word!r} does not name a role and its variant.", "Write it like coder=builtin or planner=llm:MODEL.")
        variants[role.strip()] = variant.strip()
        if own_model:
            models[role.strip()] = settings_of(own_model.strip())
    made = TeamSettings(model=settings_of(model) if model else None, roles=variants, role_models=models, prices=prices)
    check_team(made)
    return made


def _load(role: str, variant: str) -> Any:
    module, _, name = VARIANTS[role][variant].partition(":")
    return getattr(importlib.import_module(module), name)


def _builtin(role: str) -> Any:
    return _load(role, BUILTIN)()
