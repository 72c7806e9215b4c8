"""Reads a run, finished or going on, into one trace."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeVar

from pydantic import ValidationError

from agents.coder.protocol import Refusal
from agents.models.calls import CallRecord, Trouble
from agents.models.chat import TROUBLE
from agents.reviewer.protocol import Review
from graphs.optimize.execute import IMPORTED
from graphs.run.records import LEARNT, OTHER_BASELINES, Delivery, Learnt, Recall, Tuning
from graphs.run.workbench import USE, ToolUse
from graphs.search.protocol import Ask
from kernelwright.traces.joining import Joined
from kernelwright.traces.records import Call, CandidateStep, Cost, CostLine, Kept, Noted, PlanStep, Round, RunHead, Session, Trace
from kernelwright.viewers.protocol import SENT, SHOWN
from tools.errors import UserError
from tools.records import ROOT, Baselines, Candidate, Evaluation, Plan, Problem, Profile, Record
from tools.tracing import RunStore
from tools.tracing.store import Row, unreadable
from tools.version import VERSION as RELEASE

R = TypeVar("R", bound=Record)
OWN = frozenset(("run", "schema", IMPORTED, SENT, SHOWN))
"""Facts about a run that have a place of their own, or hold for its folder alone."""
PLACED = frozenset(
    ("problem", "baselines", OTHER_BASELINES, "plan", "asked", "refusal", "tuning", "review", "candidate", "evaluation", "delivery"),
) | {"profile", "recall", LEARNT, USE, TROUBLE}
"""Kinds of records that have a place of their own in a trace."""


class Exporter:
    """One reading of a run's store."""

    def __init__(self, store: RunStore) -> None:
        """Read all rows at once, so that a run that goes on is seen at one moment."""
        self._store = store
        self._rows: dict[str, list[Row]] = defaultdict(list)
        for row in store.rows():
            self._rows[row.kind].append(row)
        self._spans = store.spans()

    def trace(self) -> Trace:
        """Join what was read; UserError for a record that this version cannot read."""
        problem = next(self._all("problem", Problem), None)
        if problem is None:
            raise UserError(f"The run in {self._store.folder} has no problem in it.", "Delete that folder: nothing was begun.")
        delivery = next(self._all("delivery", Delivery), None)
        profiles = {one.id: one for one in self._all("profile", Profile)}
        calls = tuple(self._noted(row, CallRecord) for row in self._store.call_rows() if '"messages"' in row.json)
        plans = {one.id: one for one in self._all("plan", Plan)}
        candidates = {one.id: one for one in self._all("candidate", Candidate)}
        joined = Joined(plans, candidates, tuple(self._all("recall", Recall)), calls)
        failed = tuple(self._all(TROUBLE, Trouble))
        return Trace(
            kernelwright=RELEASE,
            exported=time.time(),
            run=self._head(ended=delivery is not None),
            problem=problem,
            baselines=next(self._all("baselines", Baselines), None),
            other_baselines=tuple(self._all(OTHER_BASELINES, Baselines)),
            reference_profile=profiles.pop(ROOT, None),
            rounds=tuple(self._rounds(joined)),
            plans=tuple(self._plans(joined)),
            candidates=tuple(self._candidates(joined, profiles)),
            evaluations=tuple(self._all("evaluation", Evaluation)),
            calls=tuple(Call(id=one.id, plans=joined.plans_of_call[one.id], call=one) for one in calls),
            failed_calls=failed,
            delivery=delivery,
            cost=Cost(spent=self._store.spent(), lines=tuple(cost_lines(one.value for one in calls))),
            nodes=tuple(self._spans),
            others=tuple(self._others()),
        )

    def _head(self, *, ended: bool) -> RunHead:
        facts = self._store.all_meta()
        sessions = tuple(Session(started=started, last_seen=seen) for started, seen in self._store.sessions())
        told = {name: value for name, value in facts.items() if name not in OWN}
        return RunHead(id=facts["run"], state="ended" if ended else "unfinished", facts=told, sessions=sessions)

    def _rounds(self, joined: Joined) -> Iterator[Round]:
        spans: dict[int, list[tuple[float, float | None]]] = defaultdict(list)
        for span in self._spans:
            if span.subject.startswith("round "):
                spans[int(span.subject.removeprefix("round "))].append((span.started, span.ended))
        for number in sorted({*spans, *joined.recalls, *joined.rounds.values()}):
            ends = [ended for _, ended in spans[number] if ended is not None]
            yield Round(
                number=number,
                started=min((started for started, _ in spans[number]), default=None),
                ended=max(ends, default=None),
                recalls=joined.recalls.get(number, ()),
                plans=joined.made_in.get(number, ()),
            )

    def _plans(self, joined: Joined) -> Iterator[PlanStep]:
        asked = {one.id: one for one in self._all("asked", Ask)}
        tunings = {one.id: one for one in self._all("tuning", Tuning)}
        reviews = {one.id: one for one in self._all("review", Review)}
        learnt = {one.id: one.value.strategies for one in self._all(LEARNT, Learnt)}
        refusals, tools = by_subject(self._all("refusal", Refusal)), by_subject(self._all(USE, ToolUse))
        for name, plan in joined.plans.items():
            review = reviews.get(name)
            yield PlanStep(
                id=name,
                round=joined.rounds[name],
                plan=plan,
                asked=asked.get(name),
                calls=joined.calls_of.get(name, ()),
                tools=tuple(tools[name]),
                refusals=tuple(refusals[name]),
                tuning=tunings.get(name),
                candidates=joined.written.get(name, ()),
                candidate=review.subject if review else "",
                review=review,
                learnt=learnt.get(name, ()),
            )

    def _candidates(self, joined: Joined, profiles: dict[str, Noted[Profile]]) -> Iterator[CandidateStep]:
        evaluations = by_subject(self._all("evaluation", Evaluation))
        for name, candidate in joined.candidates.items():
            yield CandidateStep(
                id=name,
                plan=joined.plan_of[name],
                candidate=candidate,
                evaluations=tuple(one.id for one in evaluations[name]),
                profile=profiles.get(name),
            )

    def _others(self) -> Iterator[Kept]:
        for kind in sorted(set(self._rows) - PLACED):
            for row in self._rows[kind]:
                yield Kept(kind=kind, id=row.id, subject=row.subject, written=row.created, value=json.loads(row.json))

    def _all(self, kind: str, type_: type[R]) -> Iterator[Noted[R]]:
        return (self._noted(row, type_) for row in self._rows[kind])

    def _noted(self, row: Row, type_: type[R]) -> Noted[R]:
        try:
            if type_ is Candidate:
                fields = json.loads(row.json) | {"source": self._store.source(row.id)}
                del fields["id"]
                value = type_.model_validate(fields)
            else:
                value = type_.model_validate_json(row.json)
        except ValidationError as error:
            raise unreadable(f"{self._store.folder / 'run.db'} holds a record of kind {row.kind}", error) from error
        return Noted[type_](id=row.id, subject=row.subject, written=row.created, value=value)  # type: ignore[valid-type]


def trace_of(store: RunStore) -> Trace:
    """Read a run; UserError where a record cannot be read."""
    return Exporter(store).trace()


def by_subject(found: Iterable[Noted[R]]) -> dict[str, list[Noted[R]]]:
    """Group records by what they are about."""
    grouped: dict[str, list[Noted[R]]] = defaultdict(list)
    for one in found:
        grouped[one.subject].append(one)
    return grouped


def cost_lines(calls: Iterable[CallRecord]) -> Iterator[CostLine]:
    """Add up calls by role and model."""
    grouped: dict[tuple[str, str], list[CallRecord]] = defaultdict(list)
    for call in calls:
        grouped[call.role, call.model].append(call)
    for (role, model), mine in sorted(grouped.items()):
        prices = [call.cost_usd for call in mine]
        yield CostLine(
            role=role,
            model=model,
            calls=len(mine),
            input_tokens=sum(call.usage.input_tokens for call in mine),
            output_tokens=sum(call.usage.output_tokens for call in mine),
            cost_usd=None if None in prices else sum(price for price in prices if price is not None),
        )
