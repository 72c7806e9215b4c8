"""Which round a plan was made in, which plan a source was written for, which plans a model call was about."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from agents.models.calls import CallRecord
from graphs.run.records import Recall
from kernelwright.traces.records import Noted
from tools.records import ROOT, Candidate, Plan, content_hash

K = TypeVar("K", str, int)


class Joined:
    """The parts of a run by what they belong to."""

    def __init__(
        self,
        plans: Mapping[str, Noted[Plan]],
        candidates: Mapping[str, Noted[Candidate]],
        recalls: Sequence[Noted[Recall]],
        calls: Sequence[Noted[CallRecord]],
    ) -> None:
        """Join what was read of a run, each sequence oldest first."""
        self.plans = plans
        self.candidates = candidates
        self._recalled: dict[str, list[tuple[float, int]]] = defaultdict(list)
        found: dict[int, list[Noted[Recall]]] = defaultdict(list)
        for one in recalls:
            number = int(one.id.partition("/")[0])
            self._recalled[one.subject].append((one.written, number))
            found[number].append(one)
        self.recalls = {number: tuple(mine) for number, mine in found.items()}
        self.rounds = {name: self.round_at(plan.subject, plan.written) for name, plan in plans.items()}
        """Plan id to the round it was made in."""
        self.plan_of = {name: content_hash(one.value.parent, one.value.action.id) for name, one in candidates.items()}
        """Candidate id to the plan it was written for."""
        self.written = _turned((name, (plan,)) for name, plan in self.plan_of.items())
        """Plan id to the ids of what was written for it, oldest first."""
        self._on: dict[tuple[str, int], list[str]] = defaultdict(list)
        for name, plan in plans.items():
            self._on[plan.subject, self.rounds[name]].append(name)
        self.plans_of_call = {call.id: self._plans_for(call.value, call.written) for call in calls}
        self.made_in = _turned((name, (number,)) for name, number in self.rounds.items())
        """Round to the ids of its plans."""
        self.calls_of = _turned(self.plans_of_call.items())
        """Plan id to the ids of the calls made for it."""

    def round_at(self, parent: str, moment: float) -> int:
        """The round in which `parent` was worked on at a moment: that of its last recall; 0 where there was none."""
        return next((number for written, number in reversed(self._recalled[parent]) if written <= moment), 0)

    def _plans_for(self, call: CallRecord, moment: float) -> tuple[str, ...]:
        """The plans that a call's purpose names, by themselves, by a candidate, or (a planner's) by the parent they were asked for."""
        words = re.split(r"[\s,/]+", call.purpose)
        if call.role == "planner":
            parent = next((word for word in words if word in self.candidates or word == ROOT), "")
            return tuple(self._on[parent, self.round_at(parent, moment)])
        named = dict.fromkeys(self.plan_of.get(word, word) for word in words)
        return tuple(name for name in named if name in self.plans)


def _turned(pairs: Iterable[tuple[str, tuple[K, ...]]]) -> dict[K, tuple[str, ...]]:
    """Names by what they belong to, in their order."""
    found: dict[K, list[str]] = defaultdict(list)
    for name, wholes in pairs:
        for whole in wholes:
            found[whole].append(name)
    return {whole: tuple(names) for whole, names in found.items()}
