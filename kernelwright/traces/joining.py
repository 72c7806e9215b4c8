"""Which round a plan was made in, which plan a source was written for, which plans a model call was about."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from agents.models.calls import CallRecord
from graphs.run.records import Recall
from kernelwright.traces.records import Noted
from tools.records import ROOT, Candidate, Plan, content_hash


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
        written: dict[str, list[str]] = defaultdict(list)
        for name, step in self.plan_of.items():
            written[step].append(name)
        self.written = {plan: tuple(names) for plan, names in written.items()}
        self._on: dict[tuple[str, int], list[str]] = defaultdict(list)
        for name, plan in plans.items():
            self._on[plan.subject, self.rounds[name]].append(name)
        self.plans_of_call = {call.id: self.plans_for(call.value, call.written) for call in calls}

    def round_at(self, parent: str, moment: float) -> int:
        """The round in which `parent` was worked on at a moment: that of its last recall; 0 where there was none."""
        return next((number for written, number in reversed(self._recalled[parent]) if written <= moment), 0)

    def plans_for(self, call: CallRecord, moment: float) -> tuple[str, ...]:
        """The plans that a call's purpose names, by themselves, by a candidate, or (a planner's) by the parent they were asked for."""
        words = re.split(r"[\s,/]+", call.purpose)
        if call.role == "planner":
            parent = next((word for word in words if word in self.candidates or word == ROOT), "")
            return tuple(self._on[parent, self.round_at(parent, moment)])
        named = dict.fromkeys(self.plan_of.get(word, word) for word in words)
        return tuple(name for name in named if name in self.plans)
