"""The language-model writer of lessons: what `knowledge.lessons.writers` asks for, behind the agents' chat model."""

from __future__ import annotations

from pydantic import BaseModel

from agents.models import Message
from agents.models.protocol import Model
from agents.prompting.render import Prompts
from knowledge.lessons.writers import Case, Proposal, gap_of, record_of
from knowledge.records import LONGEST, RECORD
from tools.errors import MachineError

PROMPTS = Prompts(__file__)
SHOWN = 12
"""Outcomes shown to the model, the newest."""


class Rewritten(BaseModel):
    """The model's answer."""

    lesson: str
    """Empty: leave it as it is."""
    expected_gain: float | None
    reason: str


class ModelLessonWriter:
    """Lets a model word what the outcomes teach; the record in figures is added by us, and its prediction is checked against the trials."""

    def __init__(self, model: Model) -> None:
        """Ask `model`."""
        self._model = model
        self.name = model.name

    async def rewrite(self, case: Case) -> Proposal | None:
        """Propose other words for one strategy; an answer that cannot be used raises MachineError."""
        tail = " ".join((record_of(case.changes), *case.contrast))
        room = LONGEST - len(tail) - len(RECORD)
        values = {"case": case, "words": case.strategy.lesson.partition(RECORD)[0], "outcomes": case.outcomes[-SHOWN:], "gap": gap_of(case)}
        messages = (
            Message(role="system", content=PROMPTS.render("lessons_system", room=room)),
            Message(role="user", content=PROMPTS.render("lessons", **values)),
        )
        answer = await self._model.ask("reviewer", messages, Rewritten, purpose=f"lesson {case.id} {len(case.strategy.trials)}")
        if not isinstance(answer.parsed, Rewritten):
            raise MachineError(f"Its answer could not be read: {answer.complaint}", "Name another model.")
        words = " ".join(answer.parsed.lesson.partition(RECORD)[0].split())[:room]
        if not words:
            return None
        reason = f"{gap_of(case)} {' '.join(answer.parsed.reason.split())[:300]}".strip()
        return Proposal(lesson=f"{words}{RECORD}{tail}", reason=reason, expected_gain=answer.parsed.expected_gain)
