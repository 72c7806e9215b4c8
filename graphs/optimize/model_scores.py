"""What each model of an ensemble has achieved: counted anew from the run's store at the end of a round, when no call is under way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from agents.models import CallRecord
from agents.models.calls import recorded_calls
from agents.models.ensemble import LATEST, SCORES, Arm, ModelScores
from agents.reviewer.protocol import Review
from graphs.run.context import Services
from tools.records import Candidate, Evaluation, Plan, Profile, Verdict
from tools.tracing import RunStore


def score_models(services: Services) -> None:
    """Write down every model's record; nothing to do where no role has several models."""
    if services.team.chooses:
        services.store.put(
            SCORES, LATEST, ModelScores(arms=_arms(services.store, services.team.profiler.name, services.team.reviewer.name))
        )


def _arms(store: RunStore, profiler: str, reviewer: str) -> dict[str, dict[str, Arm]]:
    calls: dict[tuple[str, str], list[CallRecord]] = defaultdict(list)
    last: dict[tuple[str, str], str] = {}
    for call in recorded_calls(store).values():
        calls[call.role, call.model].append(call)
        last[call.role, _subject(call)] = call.model
    passed, accepted = _passed(store), {p for p, r in store.all("review", Review).items() if r.accepted}
    held = {n for n, p in store.all("profile", Profile).items() if p.profiler == profiler}
    read = {p for p, r in store.all("review", Review).items() if r.reviewer == reviewer}
    succeeded = {"coder": passed, "repairer": passed, "profiler": held, "reviewer": read}
    ends: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for name, plan in store.all("plan", Plan).items():
        ends["planner", plan.planner].append(name in accepted)
    for (role, subject), model in last.items():
        if role in succeeded:
            ends[role, model].append(subject in succeeded[role])
    arms: dict[str, dict[str, Arm]] = defaultdict(dict)
    for (role, model), made in calls.items():
        tries = ends[role, model]
        arms[role][model] = Arm(tries=len(tries), successes=sum(tries), usd=_usd(made), tokens=_tokens(made))
    return dict(arms)


def _subject(call: CallRecord) -> str:
    """Plan or candidate that a call is about, by its purpose; the planner's plans name their planner themselves."""
    first, _, rest = call.purpose.partition(" ")
    if call.role in ("profiler", "reviewer"):
        return rest.partition(" ")[0]
    return first.partition("/")[0]


def _passed(store: RunStore) -> set[str]:
    """Plans that ended with a passing candidate."""
    good = {e.candidate for e in store.all("evaluation", Evaluation).values() if e.verdict is Verdict.PASS}
    by_step = {(c.parent, c.action.id) for name, c in store.all("candidate", Candidate).items() if name in good}
    return {name for name, plan in store.all("plan", Plan).items() if (plan.parent, plan.action.id) in by_step}


def _usd(calls: Iterable[CallRecord]) -> float | None:
    costs = [call.cost_usd if call.source == "server" else call.saved_usd for call in calls]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def _tokens(calls: Iterable[CallRecord]) -> int:
    used = [call.saved or call.usage for call in calls]
    return sum(one.input_tokens + one.output_tokens for one in used)
