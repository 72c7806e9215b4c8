"""The LLM planner: a language model chooses, its choice is checked against what is possible and what is known."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.frame import Frame
from agents.models import Answer, Message, Model, ModelUnavailable
from agents.planner.invent import regions
from agents.planner.protocol import Briefing, Planner
from agents.prompting import Prompts
from tools.actions import describe, render_guide
from tools.records import ROOT, Action, ActionKind, Plan, content_hash

PROMPTS = Prompts(__file__)


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


class LLMPlanner:
    """Asks a language model; plans that cannot be used are sent back once, and where none is left the built-in planner chooses."""

    def __init__(self, model: Model, builtin: Planner, frame: Frame | None = None) -> None:
        """Ask `model`; `builtin` plans where it gives nothing usable, `frame` says how prompts are made."""
        self._model = model
        self._builtin = builtin
        self._frame = frame or Frame()
        self.name = model.name

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Return at most `count` plans; none where the model sees nothing worth trying."""
        # a parent is planned for again each time something was tried on it
        limits = (*briefing.kinds, *briefing.regions, *(one.candidate for one in briefing.inspirations))
        purpose = f"plan {briefing.parent} {count} {content_hash(*(one.action.id for one in briefing.tried), *limits)}"
        try:
            messages = PROMPTS.opening("plan", "planner", self._frame, **view(briefing, count))
            return await self._asked(briefing, count, messages, purpose)
        except ModelUnavailable as error:
            return await self._fall_back(briefing, count, error.what)

    async def _asked(self, briefing: Briefing, count: int, messages: tuple[Message, ...], purpose: str) -> tuple[Plan, ...]:
        answer = await self._model.ask("planner", messages, Choices, purpose=purpose)
        plans, faults = self._check(answer, briefing, count)
        if faults and not answer.complaint:
            request = PROMPTS.render("invalid", faults=faults, count=count, free=briefing.free)
            again = (*messages, Message(role="assistant", content=answer.text), Message(role="user", content=request))
            answer = await self._model.ask("planner", again, Choices, purpose=f"{purpose}, again")
            mended, left = self._check(answer, briefing, count)
            # what was usable in the first answer is not lost to a worse second one
            plans, faults = _merge(mended, plans, count), left
        if plans or not (faults or answer.complaint):
            return plans
        return await self._fall_back(briefing, count, answer.complaint or "; ".join(faults))

    async def _fall_back(self, briefing: Briefing, count: int, reason: str) -> tuple[Plan, ...]:
        plans = await self._builtin.plan(briefing, count)
        said = f"{self.name} gave no usable plan ({reason[:300]}); the built-in planner chose."
        return tuple(p.model_copy(update={"rationale": f"{said} {p.rationale}"}) for p in plans)

    def _check(self, answer: Answer, briefing: Briefing, count: int) -> tuple[tuple[Plan, ...], list[str]]:
        """Turn choices into plans, and say of each that cannot be one why."""
        if not isinstance(answer.parsed, Choices):
            return (), []
        plans: list[Plan] = []
        faults: list[str] = []
        for choice in answer.parsed.plans:
            plan = self._plan(choice, briefing, answer.model)
            fault = _fault(plan, choice, briefing)
            if fault:
                faults.append(f"{plan.action}: {fault}")
            else:
                plans.append(plan)
        return _merge(tuple(plans), (), count), faults

    def _plan(self, choice: Choice, briefing: Briefing, model: str) -> Plan:
        known = {r.strategy.id for r in briefing.recalled}
        gain = choice.predicted_gain
        return Plan(
            parent=briefing.parent,
            action=_action(choice, briefing),
            rationale=choice.rationale.strip() or "The model gave no reason.",
            strategies=tuple(dict.fromkeys(s for s in choice.strategies if s in known)),
            predicted_gain=gain if gain is not None and gain > 0 else None,
            planner=model or self.name,
        )


def view(briefing: Briefing, count: int) -> dict[str, object]:
    """Everything the planner's prompts show of a briefing."""
    return {
        "briefing": briefing,
        "problem": briefing.problem,
        "profile": briefing.profile,
        "sheet": briefing.sheet,
        "guide": render_guide(),
        "describe": describe,
        "regions": known_regions(briefing),
        "count": count,
    }


def known_regions(briefing: Briefing) -> tuple[str, ...]:
    """Regions that a plan may name: those of the options, and where the coder is free, the parent's kernels too."""
    listed = tuple(option.region for option in briefing.options)
    return tuple(dict.fromkeys((*listed, *regions(briefing)) if briefing.free else listed))


def _action(choice: Choice, briefing: Briefing) -> Action:
    """The option that the choice means, or the action as written.

    `8`, `"8"` and `8.0` mean the same; where some parameters are left out, an option that alone has the others is meant.
    """
    written = {p.name: p.value for p in choice.parameters}
    plain = _plain(written)
    there = [o for o in briefing.options if (o.kind, o.region) == (choice.kind, choice.region)]
    alike = [o for o in there if plain.items() <= _plain(o.parameters).items()]
    exact = [o for o in alike if len(o.parameters) == len(plain)]
    if exact or len(alike) == 1:
        return (exact or alike)[0]
    return Action(kind=choice.kind, region=choice.region, parameters=written)


def _plain(values: dict[str, bool | int | float | str]) -> dict[str, str]:
    return {k: str(int(v) if isinstance(v, float) and v.is_integer() else v).lower() for k, v in values.items()}


def _fault(plan: Plan, choice: Choice, briefing: Briefing) -> str:
    """Why a plan cannot be used; empty where it can."""
    action = plan.action
    known = {r.strategy.id for r in briefing.recalled}
    invented = [s for s in choice.strategies if s not in known]
    if invented:
        return f"there is no strategy {', '.join(invented)} in the list"
    if action.id in {one.action.id for one in briefing.tried}:
        return "this was tried on this parent already"
    if not briefing.allows(action):
        return "another kind or region was asked for"
    return "" if action in briefing.options else _stray(action, briefing)


def _stray(action: Action, briefing: Briefing) -> str:
    """Why an action that is not listed cannot be used; empty where the coder is free and knows the region."""
    if not briefing.free:
        return "this is not one of the options"
    names = known_regions(briefing)
    if not _names_region(action.region, names, briefing):
        return f"there is no region {action.region!r}; regions are {', '.join(names)}"
    return ""


def _names_region(region: str, names: tuple[str, ...], briefing: Briefing) -> bool:
    """Whether every part of `a+b` is known; for the reference, whose kernels are still to be written, its operators count as well."""
    operators = {op.split(".")[1] for op in briefing.problem.work.operators if "." in op} if briefing.parent == ROOT else set()
    parts = {part for name in names for part in (name, *name.split("+"))}
    return bool(region) and all(part.strip() in parts | operators for part in region.split("+"))


def _merge(first: tuple[Plan, ...], second: tuple[Plan, ...], count: int) -> tuple[Plan, ...]:
    return tuple({plan.id: plan for plan in reversed((*first, *second))}.values())[::-1][:count]
