"""What two executions of a run have in common, and where the second first went another way."""

from __future__ import annotations

from collections.abc import Iterable

from agents.models.recording import PromptChange
from graphs.run.records import Delivery
from tools.records import Candidate, Plan, Record
from tools.tracing import RunStore


class Divergence(Record):
    """One thing that the repetition did and the record did not, or the other way round."""

    kind: str
    """`call`, `evaluation`, `plan`, `candidate` or `delivery`."""
    what: str
    """One sentence."""


class Repetition(Record):
    """How repeating a run went."""

    run: str
    plans: int
    """Of the record."""
    candidates: int
    calls: int
    """Model calls answered from the record."""
    divergences: tuple[Divergence, ...] = ()
    """In the order of the record; none where plans, sources and delivery are the same."""
    prompts: tuple[PromptChange, ...] = ()
    """Questions asked in other words than recorded; their recorded answers were taken all the same."""


def compare(record: RunStore, repeated: RunStore) -> tuple[Divergence, ...]:
    """List what differs in plans, sources and delivery."""
    return (*_plans(record, repeated), *_candidates(record, repeated), *_deliveries(record, repeated))


def _plans(record: RunStore, repeated: RunStore) -> list[Divergence]:
    before, now = record.all("plan", Plan), repeated.all("plan", Plan)
    found = [Divergence(kind="plan", what=f"The plan {_plan(before[n])} was not made again.") for n in before if n not in now]
    found += [Divergence(kind="plan", what=f"The plan {_plan(now[n])} is not in the record.") for n in now if n not in before]
    for name in before:
        if name in now and before[name].planner != now[name].planner:
            who = f"by {before[name].planner} in the record, by {now[name].planner} now"
            found.append(Divergence(kind="plan", what=f"The plan {_plan(before[name])} was made {who}."))
    return found


def _candidates(record: RunStore, repeated: RunStore) -> list[Divergence]:
    before, now = record.all("candidate", Candidate), repeated.all("candidate", Candidate)
    found = [_other_source(one, now.values()) for name, one in before.items() if name not in now]
    known = {(one.parent, one.action.id, one.repairs) for one in before.values()}
    for name, one in now.items():
        if name not in before and (one.parent, one.action.id, one.repairs) not in known:
            found.append(Divergence(kind="candidate", what=f"The source {name} ({one.action} on {one.parent}) is not in the record."))
    return found


def _other_source(one: Candidate, now: Iterable[Candidate]) -> Divergence:
    """Say what the same step led to instead."""
    step = (one.parent, one.action.id, one.repairs)
    other = next((c for c in now if (c.parent, c.action.id, c.repairs) == step), None)
    if other is None:
        return Divergence(kind="candidate", what=f"The source {one.id} ({one.action} on {one.parent}) was not written again.")
    before, after = one.source.splitlines(), other.source.splitlines()
    line = next((n for n, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b), min(len(before), len(after)) + 1)
    return Divergence(kind="candidate", what=f"{one.action} on {one.parent} led to {other.id} instead of {one.id}: line {line} differs.")


def _deliveries(record: RunStore, repeated: RunStore) -> list[Divergence]:
    before = next(iter(record.all("delivery", Delivery).values()), None)
    now = next(iter(repeated.all("delivery", Delivery).values()), None)
    if before is None or now is None or before.candidate == now.candidate:
        return []
    return [Divergence(kind="delivery", what=f"{now.candidate} is delivered instead of {before.candidate}.")]


def _plan(plan: Plan) -> str:
    return f"{plan.action} on {plan.parent}"
