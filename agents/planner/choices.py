"""What a model writes when it chooses: plans in words, matched with what is possible, and what keeps one from being used."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.planner.invent import LISTED_ONLY, regions
from agents.planner.protocol import Briefing
from tools.records import IDEA, ROOT, Action, ActionKind, Plan
from tools.records.renamed import present_parameters


class Parameter(BaseModel):
    """One named value."""

    name: str
    value: bool | int | float | str


class Choice(BaseModel):
    """One plan as a model writes it."""

    kind: ActionKind
    region: str
    parameters: list[Parameter]
    rationale: str
    predicted_gain: float | None = Field(description="Parent time over child time, or null")
    strategies: list[str] = Field(description="Ids of the strategies it rests on")


class Choices(BaseModel):
    """The model's answer."""

    plans: list[Choice]


def known_regions(briefing: Briefing) -> tuple[str, ...]:
    """Regions that a plan may name: those of the options, and where the coder is free, the parent's kernels too."""
    listed = tuple(option.region for option in briefing.options)
    return tuple(dict.fromkeys((*listed, *regions(briefing)) if briefing.free else listed))


def action_of(choice: Choice, briefing: Briefing) -> Action:
    """The option that the choice means, or the action as written.

    `8`, `"8"` and `8.0` mean the same; where some parameters are left out, an option that alone has the others is meant.
    """
    written = present_parameters({p.name: p.value for p in choice.parameters})
    if choice.kind is ActionKind.REWRITE:
        return _rewrite(written, briefing)
    plain = _plain(written)
    there = [o for o in briefing.options if (o.kind, o.region) == (choice.kind, choice.region)]
    alike = [o for o in there if plain.items() <= _plain(o.parameters).items()]
    exact = [o for o in alike if len(o.parameters) == len(plain)]
    if exact or len(alike) == 1:
        return (exact or alike)[0]
    return Action(kind=choice.kind, region=choice.region, parameters=written)


def _rewrite(written: dict[str, bool | int | float | str], briefing: Briefing) -> Action:
    """A rewrite is its idea and nothing else: equal ideas are one action, however they are spaced, and wherever they are said to apply."""
    idea = " ".join(str(written.get(IDEA, "")).split())
    return Action(kind=ActionKind.REWRITE, region=briefing.problem.entry, parameters={IDEA: idea} if idea else {})


def _plain(values: dict[str, bool | int | float | str]) -> dict[str, str]:
    return {k: str(int(v) if isinstance(v, float) and v.is_integer() else v).lower() for k, v in values.items()}


def fault_of(plan: Plan, choice: Choice, briefing: Briefing) -> str:
    """Why a plan cannot be used; empty where it can."""
    known = {r.strategy.id for r in briefing.recalled}
    invented = [s for s in choice.strategies if s not in known]
    if invented:
        return f"there is no strategy {', '.join(invented)} in the list"
    return action_fault(plan.action, briefing)


def action_fault(action: Action, briefing: Briefing) -> str:
    """Why an action cannot be the next step of a parent; empty where it can."""
    if action.kind is ActionKind.REWRITE and briefing.free and IDEA not in action.parameters:
        return f"a rewrite needs its design in words, as the parameter {IDEA}"
    if action.id in {one.action.id for one in briefing.tried}:
        return "this was tried on this parent already"
    if not briefing.allows(action):
        return "another kind or region was asked for"
    return "" if action in briefing.options else stray_fault(action, briefing)


def stray_fault(action: Action, briefing: Briefing) -> str:
    """Why an action that is not listed cannot be used; empty where the coder is free and knows the region."""
    if not briefing.free or LISTED_ONLY & action.parameters.keys():
        return "this is not one of the options"
    if action.kind is ActionKind.REWRITE:
        return ""
    names = known_regions(briefing)
    if not _names_region(action.region, names, briefing):
        return f"there is no region {action.region!r}; regions are {', '.join(names)}"
    return ""


def _names_region(region: str, names: tuple[str, ...], briefing: Briefing) -> bool:
    """Whether every part of `a+b` is known; for the reference, whose kernels are still to be written, its operators count as well."""
    operators = {op.split(".")[1] for op in briefing.problem.work.operators if "." in op} if briefing.parent == ROOT else set()
    parts = {part for name in names for part in (name, *name.split("+"))}
    return bool(region) and all(part.strip() in parts | operators for part in region.split("+"))
