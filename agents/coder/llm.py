"""The LLM coder: one action on one parent, answered with a whole source in a fenced block."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from agents.coder.builtin import BuiltinCoder
from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.coder.source import read_source
from agents.models import Answer, Message, Model, ModelUnavailable
from agents.prompting import Prompts
from tools.actions import GUIDE, describe
from tools.logs import telling_part
from tools.records import Action, Candidate, Evaluation, HardwareSheet, Problem

PROMPTS = Prompts(__file__)
LOG_LIMIT = 3000
"""Characters of a failing candidate's log that a repair sees."""


class LLMCoder:
    """Asks a language model for the source; an answer that holds none is sent back once with what is wrong."""

    free = True

    def __init__(self, model: Model, builtin: BuiltinCoder) -> None:
        """Ask `model`; `builtin` gives it a working source to start from where it can."""
        self._model = model
        self._builtin = builtin
        self.name = model.name

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """None: any action is allowed."""
        return ()

    async def limits(self, problem: Problem) -> tuple[str, ...]:
        """None: a model may try anything."""
        return ()

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Ask for the source that the action makes of the parent."""
        start = await self._start(task)
        messages = PROMPTS.opening("write", role="coder", **view(task), start=start)
        return await self._draft("coder", messages, f"{task.plan.id}/write")

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Show the failing source, its verdict and the telling part of the log, and ask for the mended whole."""
        log = telling_part(evaluation.log, LOG_LIMIT)
        messages = PROMPTS.opening("repair", role="repairer", **view(task), draft=draft, evaluation=evaluation, log=log, attempt=attempt)
        return await self._draft("repairer", messages, f"{task.plan.id}/repair {attempt}")

    async def _start(self, task: CodingTask) -> str:
        """The built-in coder's source of the reference, where the parent is the reference and it has one."""
        if task.parent is not None:
            return ""
        draft = await self._builtin.start(task.problem)
        return draft.source if isinstance(draft, Draft) else ""

    async def _draft(self, role: str, messages: tuple[Message, ...], purpose: str) -> Draft | Refusal:
        """Ask; a server that fails for good costs this plan, not the run."""
        try:
            return await self._asked(role, messages, purpose)
        except ModelUnavailable as error:
            return Refusal(reason=error.what)

    async def _asked(self, role: str, messages: tuple[Message, ...], purpose: str) -> Draft | Refusal:
        answer = await self._model.ask(role, messages, purpose=purpose)
        source, complaint = _source(answer)
        notes = answer.notes
        if complaint and answer.finish != "refusal":
            again = (*messages, Message(role="assistant", content=answer.text or "(nothing)"), _unusable(complaint))
            answer = await self._model.ask(role, again, purpose=f"{purpose}, again")
            notes = (*notes, f"The first answer could not be used: {complaint}", *answer.notes)
            source, complaint = _source(answer)
        if complaint:
            return Refusal(reason=f"{self.name} gave no usable source: {complaint}")
        return Draft(source=source, notes=tuple(dict.fromkeys(notes)))


def view(task: CodingTask) -> dict[str, Any]:
    """Everything the coder's prompts show of a task."""
    return {
        "problem": task.problem,
        "parent": task.parent,
        "plan": task.plan,
        "action": describe(task.plan.action),
        "meaning": GUIDE[task.plan.action.kind],
        "profile": task.profile,
        "sheet": task.sheet,
        "versions": {name: metadata.version(name) for name in ("torch", "triton")},
    }


def _source(answer: Answer) -> tuple[str, str]:
    if answer.finish == "refusal":
        return "", f"the model declined: {answer.text[:300]}"
    source, complaint = read_source(answer.text)
    if complaint and answer.finish == "length":
        complaint = f"The answer was cut off at the output limit. {complaint}"
    return source, complaint


def _unusable(complaint: str) -> Message:
    return Message(role="user", content=PROMPTS.render("unusable", complaint=complaint))
