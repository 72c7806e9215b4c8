"""The LLM planner: a language model chooses, its choice is checked against what is possible and what is known."""

from __future__ import annotations

from agents.models import Answer, Message, Model, ModelUnavailable
from agents.planner.choices import Choice, Choices, action_of, fault_of, known_regions
from agents.planner.edits import ask_edits
from agents.planner.protocol import Briefing, Planner
from agents.planner.weigh import LETTERS, WeighCase, Weights, ask_weights
from agents.planner.world import Check, TreeCase, TreeEdits
from agents.prompting.frame import Frame
from agents.prompting.render import Prompts
from tools.actions import describe, render_guide
from tools.records import Plan, content_hash

PROMPTS = Prompts(__file__)


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

    async def edit(self, case: TreeCase, check: Check) -> TreeEdits:
        """Let the model edit a tree of decisions; what it cannot do is said, and left to the keeper's rules."""
        try:
            messages = PROMPTS.opening("edit", "planner", self._frame, **view(case.briefing, case.most), case=case)
            return await ask_edits(self._model, PROMPTS, messages, case, check)
        except ModelUnavailable as error:
            return TreeEdits(by=self.name, reason=error.what)

    async def weigh(self, case: WeighCase) -> Weights:
        """Let the model weigh a list of choices; where it gives nothing, the answer has no scores and says why."""
        try:
            one, ranked = (PROMPTS.opening("weigh", "planner", self._frame, **weigh_view(case, rank=rank)) for rank in (False, True))
            return await ask_weights(self._model, one, ranked, case)
        except ModelUnavailable as error:
            return Weights(model=self.name, reason=error.what)

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
            fault = fault_of(plan, choice, briefing)
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
            action=action_of(choice, briefing),
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
        "standing": briefing.standing,
        "guide": render_guide(),
        "describe": describe,
        "regions": known_regions(briefing),
        "count": count,
    }


def weigh_view(case: WeighCase, *, rank: bool) -> dict[str, object]:
    """Everything the prompts for a weighing show."""
    choices = list(zip(LETTERS, case.groups, case.actions, strict=False))
    return {**view(case.briefing, len(choices)), "case": case, "choices": choices, "rank": rank}


def _merge(first: tuple[Plan, ...], second: tuple[Plan, ...], count: int) -> tuple[Plan, ...]:
    return tuple({plan.id: plan for plan in reversed((*first, *second))}.values())[::-1][:count]
