"""What a run's model calls came to: by role, model, plan and candidate, from its record."""

from __future__ import annotations

from collections import defaultdict

from agents.models.bills import Bill, bill, total
from agents.models.calls import CallRecord, recorded_calls
from agents.models.ensemble import CHOICE, Choice
from tools.records import Candidate, Plan, Record
from tools.tracing import RunStore

SEARCH = "search"
"""Whom calls are put down to that no single plan asked for: the reference's profile, plans that led to none."""


class Costs(Record):
    """The bills of a run; those of plans and of candidates each add up to the whole, with what belongs to none under `search`."""

    run: Bill
    roles: dict[str, Bill]
    models: dict[str, Bill]
    plans: dict[str, Bill]
    """By plan id. A planner's call is shared equally by the plans on the parent it was made for."""
    candidates: dict[str, Bill]
    """By candidate id: the bill of the plan that led to it; a plan whose repairs left several drafts is put down to the last."""
    choices: tuple[Choice, ...]
    """Which of several models was asked, and why; empty where no role has several."""


def costs(store: RunStore) -> Costs:
    """Add up what was asked."""
    calls = list(recorded_calls(store).values())
    plans = store.all("plan", Plan)
    by_plan = _by_plan(calls, plans, store.all("candidate", Candidate))
    last = {(c.parent, c.action.id): name for name, c in store.all("candidate", Candidate).items()}
    by_candidate: dict[str, Bill] = defaultdict(Bill)
    for name, one in by_plan.items():
        plan = plans.get(name)
        by_candidate[last.get((plan.parent, plan.action.id), SEARCH) if plan else SEARCH] += one
    return Costs(
        run=total(calls),
        roles=_grouped(calls, "role"),
        models=_grouped(calls, "model"),
        plans=by_plan,
        candidates=dict(by_candidate),
        choices=tuple(store.all(CHOICE, Choice).values()),
    )


def _grouped(calls: list[CallRecord], field: str) -> dict[str, Bill]:
    found: dict[str, Bill] = defaultdict(Bill)
    for call in calls:
        found[getattr(call, field)] += bill(call)
    return dict(found)


def _by_plan(calls: list[CallRecord], plans: dict[str, Plan], candidates: dict[str, Candidate]) -> dict[str, Bill]:
    found: dict[str, Bill] = defaultdict(Bill)
    on: dict[str, list[str]] = defaultdict(list)
    for name, plan in plans.items():
        on[plan.parent].append(name)
    step = {(plan.parent, plan.action.id): name for name, plan in plans.items()}
    made_by = {name: step.get((c.parent, c.action.id), SEARCH) for name, c in candidates.items()}
    for call in calls:
        words = call.purpose.replace("/", " ").replace(",", " ").split()
        if call.role == "planner" and len(words) > 1 and (mine := on.get(words[1], [])):
            for name in mine:
                found[name] += bill(call).share(len(mine))
            continue
        # purposes name the plan they are for, or the candidate that was profiled
        named = next((word for word in words if word in plans), None) or next((made_by[w] for w in words if w in made_by), SEARCH)
        found[named] += bill(call)
    return dict(found)
