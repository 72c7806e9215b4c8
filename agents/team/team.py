"""The agents of one run, made from its settings."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.coder.protocol import Coder
from agents.models import CallStore, ChatModel, Ensemble, Guard, InFlight, MemoryCalls, Model, Recording, Shared
from agents.planner.protocol import Planner
from agents.profiler.protocol import Profiler
from agents.reviewer.protocol import Reviewer
from agents.team.settings import BUILTIN, VARIANTS, TeamSettings, check_team, price_table
from agents.writing.bench import Bench, Equipped


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

    def equip(self, bench: Bench) -> None:
        """Give the coder who carries out the calls of its tools."""
        if isinstance(self.coder, Equipped):
            self.coder.bench = bench

    def in_flight(self) -> tuple[InFlight, ...]:
        """Calls of its models that are not answered yet."""
        return tuple(call for model in self.models for call in model.in_flight.values())

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
            agents[role] = _load(role, settings.variant(role))()
            continue
        ensemble: Model = Ensemble(models, store, prices, seed=settings.seed, cost_weight=settings.cost_weight)
        agents[role] = _load(role, settings.variant(role))(ensemble if len(models) > 1 else models[0], _builtin(role), settings.frame)
    return AgentTeam(**agents, models=tuple(made.values()), chooses=chooses, shared=shared)


def _load(role: str, variant: str) -> Any:
    module, _, name = VARIANTS[role][variant].partition(":")
    return getattr(importlib.import_module(module), name)


def _builtin(role: str) -> Any:
    return _load(role, BUILTIN)()
