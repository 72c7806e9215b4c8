"""The LLM coder: one action on one parent, answered with a whole source, its marked parts or edits of it."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from agents.coder.anchors import anchored, find_anchors
from agents.coder.answers import Ground, idea_of, source_of
from agents.coder.builtin import BuiltinCoder
from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.coder.written import by_numbers
from agents.models import Answer, Message, Model, ModelUnavailable
from agents.prompting.frame import Frame
from agents.prompting.render import Prompts
from agents.writing.bench import Bench, NoBench
from agents.writing.session import Session
from agents.writing.tools import with_tools
from tools.actions import GUIDE, describe
from tools.idioms.choice import fitting, within
from tools.logs import telling_part
from tools.records import ATTEMPT, IDEA, Action, ActionKind, Candidate, Evaluation, HardwareSheet, Plan, Problem
from tools.reports.evaluation import report

PROMPTS = Prompts(__file__)
LONG = 200
"""Operators of a reference from which on the built-in coder's source of it shows whoever designs nothing: it takes minutes, and is cut."""
LOG_LIMIT = 3000
"""Characters of a failing candidate's log that a repair sees."""


IDIOM_TOKENS = 2500
"""Of a prompt that idioms may take, at most."""


class LLMCoder:
    """Asks a language model for the source; an answer that holds none is sent back once with what is wrong."""

    free = True

    def __init__(self, model: Model, builtin: BuiltinCoder, frame: Frame | None = None) -> None:
        """Ask `model`; `builtin` gives it a working source to start from where it can, `frame` says how prompts are made."""
        self._model = model
        self._builtin = builtin
        self._frame = frame or Frame()
        self.name = model.name
        self.bench: Bench = NoBench()
        """Who carries out the calls of its tools."""

    async def begin(self, problem: Problem, sheet: HardwareSheet, trace_s: float) -> None:
        """Have the built-in coder begin, where its source is what the model starts from."""
        if not self._frame.scratch and self._frame.language == "triton":
            await self._builtin.begin(problem, sheet, trace_s)

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """None: any action is allowed."""
        return ()

    async def limits(self, problem: Problem) -> tuple[str, ...]:
        """None: a model may try anything."""
        return ()

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Change the parent's numbers where the action is no more than that, else ask for the source that it makes of the parent."""
        if (numbered := by_numbers(task.problem, task.parent, task.plan.action)) is not None:
            return numbered
        is_design = task.plan.action.kind is ActionKind.REWRITE
        start = "" if is_design and len(task.problem.work.operators) > LONG else await self._start(task)
        template = "design" if is_design else "write"
        return await self._draft("coder", task, f"{task.plan.id}/write", template, start=start)

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Show the failing source, its verdict and the telling part of the log, and ask for the mended whole."""
        given = failure_view(task, draft, evaluation, attempt)
        result = await self._draft("repairer", task, f"{task.plan.id}/repair {attempt}", "repair", failing=draft.source, **given)
        # what was mended is still the same design
        return result.model_copy(update={"idea": draft.idea or result.idea}) if isinstance(result, Draft) else result

    async def _start(self, task: CodingTask) -> str:
        """The built-in coder's source of the reference, where the parent is the reference and it has one."""
        if task.parent is not None or self._frame.scratch or self._frame.language != "triton":
            return ""
        draft = await self._builtin.start(task.problem)
        return draft.source if isinstance(draft, Draft) else ""

    async def _draft(self, role: str, task: CodingTask, purpose: str, template: str, failing: str = "", **given: Any) -> Draft | Refusal:
        """Ask; a server that fails for good, or a prompt that is too long, costs this plan, not the run."""
        ground, is_design = ground_of(task, failing), task.plan.action.kind is ActionKind.REWRITE
        try:
            try:
                messages = PROMPTS.opening(template, role, self._frame, **view(task, ground), **given)
            except ModelUnavailable:
                if task.parent is None or failing:
                    raise
                # of a parent that is too long to be shown, a part serves to see how it is done; nothing of it can be edited then
                ground = Ground()
                messages = PROMPTS.opening(template, role, self._frame, **view(task, ground), **given)
            draft = await self._asked(role, task.plan, messages, purpose, ground)
            return draft if is_design or isinstance(draft, Refusal) else draft.model_copy(update={"idea": ""})
        except ModelUnavailable as error:
            return Refusal(reason=f"{error.what} {error.mend}".strip())

    async def _asked(self, role: str, plan: Plan, messages: tuple[Message, ...], purpose: str, ground: Ground) -> Draft | Refusal:
        answer = await self._answer(role, messages, purpose, plan)
        source, complaint = source_of(answer, ground)
        notes = answer.notes
        if complaint and answer.finish != "refusal":
            again = (*messages, Message(role="assistant", content=answer.text or "(nothing)"), _unusable(complaint, ground))
            answer = await self._model.ask(role, again, purpose=f"{purpose}, again")
            notes = (*notes, f"The first answer could not be used: {complaint}", *answer.notes)
            source, complaint = source_of(answer, ground)
        if complaint:
            return Refusal(reason=f"{self.name} gave no usable source: {complaint}")
        return Draft(source=source, notes=tuple(dict.fromkeys(notes)), idea=idea_of(answer.text))

    async def _answer(self, role: str, messages: tuple[Message, ...], purpose: str, plan: Plan) -> Answer:
        """Ask, with tools where the run allows calls of them."""
        calls = self._frame.tools
        if not calls:
            return await self._model.ask(role, messages, purpose=purpose)
        from agents.writing.conversation import converse

        opening = with_tools(messages, calls)
        return await converse(self._model, role, opening, purpose, Session(self.bench, plan, purpose, calls))


def ground_of(task: CodingTask, failing: str = "") -> Ground:
    """What an answer may refer to: the parent's marked parts, but for a rewrite, and the source that edits are made in."""
    parent = task.parent.source if task.parent else ""
    anchors = find_anchors(parent, task.plan.action.region) if parent and task.plan.action.kind is not ActionKind.REWRITE else ()
    return Ground(parent, anchors, failing or parent)


def failure_view(task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> dict[str, Any]:
    """What a repair's prompt shows of a draft that failed, beside the task."""
    ended = report(task.problem, evaluation, task.sheet, draft.source)
    return {"draft": draft, "ended": ended, "log": telling_part(evaluation.log, LOG_LIMIT), "attempt": attempt}


def view(task: CodingTask, ground: Ground | None = None) -> dict[str, Any]:
    """Everything the coder's prompts show of a task; a parent that edits cannot be made in is shown in part."""
    ground = ground_of(task) if ground is None else ground
    return {
        "problem": task.problem,
        "parent": task.parent,
        "whole": bool(ground.edited),
        "marked": anchored(task.parent.source, ground.anchors) if task.parent else "",
        "parts": len(ground.anchors),
        "plan": task.plan,
        "design": task.plan.action.kind is ActionKind.REWRITE,
        "idea": task.plan.action.parameters.get(IDEA, ""),
        "beside": max(0, int(task.plan.action.parameters.get(ATTEMPT, 0)) - task.standing.designs - 1),
        "programs": task.programs,
        "doubt": task.doubt,
        "standing": task.standing,
        "recalled": task.recalled,
        "idioms": within(fitting(task.problem, task.profile.bottleneck), IDIOM_TOKENS),
        "judged": report(task.problem, task.evaluation, task.sheet, task.parent.source) if task.evaluation and task.parent else "",
        "action": describe(task.plan.action),
        "meaning": GUIDE[task.plan.action.kind],
        "profile": task.profile,
        "sheet": task.sheet,
        "versions": {name: task.versions.get(name) or metadata.version(name) for name in ("torch", "triton")},
        "swept": task.swept,
    }


def _unusable(complaint: str, ground: Ground) -> Message:
    return Message(
        role="user", content=PROMPTS.render("unusable", complaint=complaint, parts=len(ground.anchors), edits=bool(ground.edited))
    )
