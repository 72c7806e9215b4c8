"""Which variant plays each role and with which model: the variants there are, and the settings that choose among them."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from agents.models import ModelSettings, PriceTable
from agents.prompting.frame import Frame
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
