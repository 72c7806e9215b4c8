"""The LLM reviewer: concerns and a lesson beside the built-in reviewer's decision, which stands whatever the model says."""

from __future__ import annotations

import difflib

from pydantic import BaseModel, Field

from agents.models import BudgetReached, Model, ModelUnavailable
from agents.prompting.frame import Frame
from agents.prompting.render import Prompts
from agents.reviewer.protocol import Check, Review, ReviewCase, Reviewer
from tools.actions import describe
from tools.evaluation.supervisor.static_rules import inspect_source
from tools.logs import telling_part

PROMPTS = Prompts(__file__)
LOG_LIMIT = 1500
LESSON_LIMIT = 600


class Remarks(BaseModel):
    """The model's answer."""

    concerns: list[str]
    checks: list[Check] = Field(default_factory=list)
    lesson: str


class LLMReviewer:
    """Adds a model's remarks, and checks it asks for, to a review; accepted, gain and reason are always the built-in reviewer's."""

    def __init__(self, model: Model, builtin: Reviewer, frame: Frame | None = None) -> None:
        """Ask `model` for remarks on what `builtin` decides; `frame` says how prompts are made."""
        self._model = model
        self._builtin = builtin
        self._frame = frame or Frame()
        self.name = model.name

    async def review(self, case: ReviewCase) -> Review:
        """Judge one case by its evidence, then add remarks."""
        review = await self._builtin.review(case)
        try:
            messages = PROMPTS.opening("review", "reviewer", self._frame, **view(case, review))
            answer = await self._model.ask("reviewer", messages, Remarks, purpose=f"review {case.plan.id} {case.candidate.id}")
        except (ModelUnavailable, BudgetReached) as error:
            return _with(review, f"The model was not asked or did not answer: {error.what}")
        if not isinstance(answer.parsed, Remarks):
            return _with(review, f"The model's remarks could not be read: {answer.complaint}")
        concerns = tuple(c.strip() for c in answer.parsed.concerns if c.strip())
        word = " ".join(answer.parsed.lesson.split())[:LESSON_LIMIT]
        checks = tuple(dict.fromkeys(answer.parsed.checks)) if review.accepted else ()
        update = {"concerns": (*review.concerns, *concerns), "checks": checks, "word": word, "reviewer": self.name}
        return review.model_copy(update=update)


def view(case: ReviewCase, review: Review) -> dict[str, object]:
    """Everything the reviewer's prompts show of a case."""
    before = case.parent_source or case.problem.source
    lines = difflib.unified_diff(before.splitlines(), case.candidate.source.splitlines(), "parent", "candidate", lineterm="")
    return {
        "case": case,
        "review": review,
        "problem": case.problem,
        "action": describe(case.plan.action),
        "diff": "\n".join(lines),
        "findings": [str(finding) for finding in inspect_source(case.candidate.source)],
        "checks": {Check.CONFIRM.value: "judge it again now with every distribution of inputs, more calls, new seeds and new processes"},
        "log": telling_part(case.evaluation.log, LOG_LIMIT),
    }


def _with(review: Review, concern: str) -> Review:
    return review.model_copy(update={"concerns": (*review.concerns, concern)})
