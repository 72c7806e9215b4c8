"""The LLM coder: one action on one parent, answered with a whole source in a fenced block."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from agents.coder.anchors import Anchor, anchored, find_anchors, outside_change, read_parts, replaced, without_marks
from agents.coder.builtin import BuiltinCoder
from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.coder.source import python_blocks, read_source
from agents.coder.written import by_numbers
from agents.models import Answer, Message, Model, ModelUnavailable
from agents.prompting.frame import Frame
from agents.prompting.render import Prompts
from tools.actions import GUIDE, describe
from tools.logs import telling_part
from tools.records import Action, Candidate, Evaluation, HardwareSheet, Problem

PROMPTS = Prompts(__file__)
LOG_LIMIT = 3000
"""Characters of a failing candidate's log that a repair sees."""


class LLMCoder:
    """Asks a language model for the source; an answer that holds none is sent back once with what is wrong."""

    free = True

    def __init__(self, model: Model, builtin: BuiltinCoder, frame: Frame | None = None) -> None:
        """Ask `model`; `builtin` gives it a working source to start from where it can, `frame` says how prompts are made."""
        self._model = model
        self._builtin = builtin
        self._frame = frame or Frame()
        self.name = model.name

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
        start = await self._start(task)
        return await self._draft("coder", task, f"{task.plan.id}/write", "write", start=start)

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Show the failing source, its verdict and the telling part of the log, and ask for the mended whole."""
        log = telling_part(evaluation.log, LOG_LIMIT)
        given = {"draft": draft, "evaluation": evaluation, "log": log, "attempt": attempt}
        return await self._draft("repairer", task, f"{task.plan.id}/repair {attempt}", "repair", **given)

    async def _start(self, task: CodingTask) -> str:
        """The built-in coder's source of the reference, where the parent is the reference and it has one."""
        if task.parent is not None or self._frame.scratch or self._frame.language != "triton":
            return ""
        draft = await self._builtin.start(task.problem)
        return draft.source if isinstance(draft, Draft) else ""

    async def _draft(self, role: str, task: CodingTask, purpose: str, template: str, **given: Any) -> Draft | Refusal:
        """Ask; a server that fails for good, or a prompt that is too long, costs this plan, not the run."""
        try:
            messages = PROMPTS.opening(template, role, self._frame, **view(task), **given)
            return await self._asked(role, task, messages, purpose)
        except ModelUnavailable as error:
            return Refusal(reason=error.what)

    async def _asked(self, role: str, task: CodingTask, messages: tuple[Message, ...], purpose: str) -> Draft | Refusal:
        answer = await self._model.ask(role, messages, purpose=purpose)
        source, complaint = _source(answer, task)
        notes = answer.notes
        if complaint and answer.finish != "refusal":
            again = (*messages, Message(role="assistant", content=answer.text or "(nothing)"), _unusable(complaint, task))
            answer = await self._model.ask(role, again, purpose=f"{purpose}, again")
            notes = (*notes, f"The first answer could not be used: {complaint}", *answer.notes)
            source, complaint = _source(answer, task)
        if complaint:
            return Refusal(reason=f"{self.name} gave no usable source: {complaint}")
        return Draft(source=source, notes=tuple(dict.fromkeys(notes)))


def view(task: CodingTask) -> dict[str, Any]:
    """Everything the coder's prompts show of a task."""
    anchors = _anchors(task)
    return {
        "problem": task.problem,
        "parent": task.parent,
        "marked": anchored(task.parent.source, anchors) if task.parent else "",
        "parts": len(anchors),
        "plan": task.plan,
        "programs": task.programs,
        "doubt": task.doubt,
        "action": describe(task.plan.action),
        "meaning": GUIDE[task.plan.action.kind],
        "profile": task.profile,
        "sheet": task.sheet,
        "versions": {name: metadata.version(name) for name in ("torch", "triton")},
    }


def _anchors(task: CodingTask) -> tuple[Anchor, ...]:
    """What of the parent may change; nothing is marked where there is no parent, or its source names no such region."""
    return find_anchors(task.parent.source, task.plan.action.region) if task.parent else ()


def _source(answer: Answer, task: CodingTask) -> tuple[str, str]:
    """The whole source that an answer amounts to, and an empty complaint; or what keeps it from being used."""
    if answer.finish == "refusal":
        return "", f"the model declined: {answer.text[:300]}"
    anchors = _anchors(task)
    source, complaint = read_source(answer.text)
    if complaint and answer.finish == "length":
        complaint = f"The answer was cut off at the output limit. {complaint}"
    if task.parent is None or not anchors:
        return source, complaint
    if complaint and (parts := read_parts("\n".join(python_blocks(answer.text)))):
        whole, wrong = replaced(task.parent.source, anchors, parts)
        return ("", wrong) if wrong else read_source(f"~~~~~python\n{whole}~~~~~\n")
    if complaint:
        return "", complaint
    source = without_marks(source)
    complaint = outside_change(task.parent.source, anchors, source)
    return ("", complaint) if complaint else (source, "")


def _unusable(complaint: str, task: CodingTask) -> Message:
    return Message(role="user", content=PROMPTS.render("unusable", complaint=complaint, parts=len(_anchors(task))))
