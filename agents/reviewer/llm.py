"""The LLM reviewer: concerns and a lesson beside the built-in reviewer's decision, which stands whatever the model says."""

from __future__ import annotations

import difflib

from pydantic import BaseModel

from agents.models import BudgetReached, Model, ModelUnavailable
from agents.prompting import Prompts
from agents.reviewer.protocol import Review, ReviewCase, Reviewer
from tools.actions import describe
from tools.logs import telling_part

PROMPTS = Prompts(__file__)
LOG_LIMIT = 1500
LESSON_LIMIT = 600


class Remarks(BaseModel):
    """The model's answer."""

    concerns: list[str]
    lesson: str


class LLMReviewer:
    """Adds a model's remarks to a review; accepted, gain and reason are always the built-in reviewer's."""

    def __init__(self, model: Model, builtin: Reviewer) -> None:
        """Ask `model` for remarks on what `builtin` decides."""
        self._model = model
        self._builtin = builtin
        self.name = model.name

    async def review(self, case: ReviewCase) -> Review:
        """Judge one case by its evidence, then add remarks."""
        review = await self._builtin.review(case)
        messages = PROMPTS.opening("review", **view(case, review))
        try:
            answer = await self._model.ask("reviewer", messages, Remarks, purpose=f"review {case.plan.id} {case.candidate.id}")
        except (ModelUnavailable, BudgetReached) as error:
            return _with(review, f"The model was not asked or did not answer: {error.what}")
        if not isinstance(answer.parsed, Remarks):
            return _with(review, f"The model's remarks could not be read: {answer.complaint}")
        concerns = tuple(c.strip() for c in answer.parsed.concerns if c.strip())
        lesson = answer.parsed.lesson.strip()[:LESSON_LIMIT] or review.lesson
        return review.model_copy(update={"concerns": (*review.concerns, *concerns), "lesson": lesson, "reviewer": self.name})


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
        "log": telling_part(case.evaluation.log, LOG_LIMIT),
    }


def _with(review: Review, concern: str) -> Review:
    return review.model_copy(update={"concerns": (*review.concerns, concern)})
