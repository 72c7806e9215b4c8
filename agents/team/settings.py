"""Which variant plays each role and with which model: the variants there are, and the settings that choose among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pydantic import Field, ValidationInfo, model_validator

from agents.models import ModelSettings, PriceTable
from agents.prompting.frame import Frame
from tools.errors import UserError
from tools.records import Record

BUILTIN = "builtin"
SOLO = "solo"
Team: TypeAlias = Literal["solo", "pair", "full"]
"""How roles are shared out where a model is named: one agent designs and writes; the same with a reviewer; or one agent a role."""
TEAMS: tuple[str, ...] = get_args(Team)

VARIANTS: dict[str, dict[str, str]] = {
    "planner": {
        BUILTIN: "agents.planner.builtin:BuiltinPlanner",
        SOLO: "agents.planner.solo:SoloPlanner",
        "llm": "agents.planner.llm:LLMPlanner",
    },
    "coder": {
        BUILTIN: "agents.coder.builtin:BuiltinCoder",
        "llm": "agents.coder.llm:LLMCoder",
        "mixed": "agents.coder.mixed:MixedCoder",
    },
    "profiler": {BUILTIN: "agents.profiler.builtin:BuiltinProfiler", "llm": "agents.profiler.llm:LLMProfiler"},
    "reviewer": {BUILTIN: "agents.reviewer.builtin:BuiltinReviewer", "llm": "agents.reviewer.llm:LLMReviewer"},
}
"""Role to variant to dotted path. Those without a model are made without arguments, every other as `(model, the role's builtin, frame)`."""
WITHOUT_MODEL = frozenset({BUILTIN, SOLO})
"""Variants that ask no model: what a solo planner plans is stated and written by the coder."""

WITH_MODEL: dict[Team, dict[str, str]] = {
    "solo": {"planner": SOLO, "coder": "mixed", "profiler": BUILTIN, "reviewer": BUILTIN},
    "pair": {"planner": SOLO, "coder": "mixed", "profiler": BUILTIN, "reviewer": "llm"},
    "full": {"planner": "llm", "coder": "mixed", "profiler": BUILTIN, "reviewer": BUILTIN},
}
"""What a user who names a model gets. The mixed coder does by construction what the built-in one can do, so that a call is paid only
for what it cannot."""
FIRST_ROLES = {"profiler": "llm", "reviewer": "llm"}
"""Variants that a model implied beyond those of `full` before there were teams: settings that were stored then are read so."""


class TeamSettings(Record):
    """Which variant plays each role, and with which model."""

    model: ModelSettings | None = None
    """None: no language model, every role built-in."""
    team: Team = "solo"
    """How roles are shared out; `roles` goes before it."""
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

    @model_validator(mode="before")
    @classmethod
    def _stored_without_team(cls, fields: Any, info: ValidationInfo) -> Any:
        """Read settings that were stored before there were teams as what they meant."""
        if info.mode != "json" or not isinstance(fields, dict) or "team" in fields:
            return fields
        named = fields.get("role_models", {})
        first = {role: variant for role, variant in FIRST_ROLES.items() if fields.get("model") or role in named}
        return {**fields, "team": "full", "roles": {**first, **fields.get("roles", {})}}

    def variant(self, role: str) -> str:
        """Variant that plays `role`."""
        return self.roles.get(role) or self._implied(role)

    def _implied(self, role: str) -> str:
        """Variant of a role that no word names: what the team makes of it."""
        if role == "planner" and self.team != "full" and self.variant("coder") != BUILTIN:
            return SOLO
        if self.model_of(role) is None:
            return BUILTIN
        if role == "coder" and self.frame.language != "triton":
            return "llm"
        # a coder that asks no model leaves the model to the planner
        return WITH_MODEL["full" if role == "planner" else self.team][role]

    def model_of(self, role: str) -> ModelSettings | None:
        """Model that `role` uses."""
        return self.role_models.get(role, self.model)

    def models_of(self, role: str) -> tuple[ModelSettings, ...]:
        """Every model that `role` chooses from; none where it is built-in."""
        first = self.model_of(role)
        if first is None or self.variant(role) in WITHOUT_MODEL:
            return ()
        return (first, *(self.role_others.get(role, ()) if role in self.role_models else self.others))

    def models(self) -> tuple[ModelSettings, ...]:
        """Every model that some role may ask."""
        return tuple({one.model_dump_json(): one for role in VARIANTS for one in self.models_of(role)}.values())


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
        if variant not in WITHOUT_MODEL and settings.model_of(role) is None:
            raise UserError(f"The {role} {variant!r} needs a language model.", f"Name one with --model, or take {role}={BUILTIN}.")
