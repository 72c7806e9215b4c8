"""The model calls of a finished run, as the answers of a run that repeats it: nothing is sent."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from agents.models.calls import CallRecord, Trouble
from agents.models.errors import BudgetReached, ModelUnavailable, NotRecorded
from agents.models.messages import Message
from tools.records import Record


class PromptChange(Record):
    """A question that is asked in other words than it was when the run was recorded."""

    role: str
    purpose: str
    line: str
    """First line that differs, as recorded and as it is now."""


class Recording:
    """Answers by the same words where they were asked before, else by role, model and purpose, and takes down that they differ."""

    def __init__(self, calls: Mapping[str, CallRecord], troubles: Mapping[str, Trouble]) -> None:
        """Take the finished calls and the failed ones, each by its key."""
        self._calls, self._troubles = dict(calls), dict(troubles)
        self._calls_by_place = {_place(c.role, c.model, c.purpose, c.turns or len(c.messages)): c for c in calls.values()}
        self._troubles_by_place = {_place(t.role, t.model, t.purpose, t.turns): t for t in troubles.values()}
        self.changes: list[PromptChange] = []

    def answer(self, key: str, role: str, model: str, purpose: str, messages: tuple[Message, ...]) -> CallRecord:
        """Return the recorded reply, fail as the recorded call failed, or raise NotRecorded."""
        place = _place(role, model, purpose, len(messages))
        if key in self._calls:
            return self._calls[key]
        if key in self._troubles:
            raise _error(self._troubles[key])
        recorded = self._calls_by_place.get(place)
        if recorded is not None:
            self.changes.append(PromptChange(role=role, purpose=purpose, line=first_difference(recorded.messages, messages)))
            return recorded
        if place in self._troubles_by_place:
            raise _error(self._troubles_by_place[place])
        raise NotRecorded(f"The {role} asks {model} for {purpose!r}, which the recorded run never did.", "Look at what led there.")


def first_difference(before: Iterable[Message], now: Iterable[Message]) -> str:
    """Show the first line in which two conversations differ."""
    old, new = ([line for m in messages for line in f"{m.role}: {m.content}".splitlines()] for messages in (before, now))
    found = [line for line in difflib.unified_diff(old, new, lineterm="", n=0) if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return " / ".join(line[:160] for line in found[:2]) or "only settings or schema differ"


def _place(role: str, model: str, purpose: str, turns: int) -> tuple[str, str, str, int]:
    return role, model, purpose, turns


def _error(trouble: Trouble) -> BudgetReached | ModelUnavailable:
    return (BudgetReached if trouble.kind == "budget" else ModelUnavailable)(trouble.what, trouble.mend)
