"""Making a fork: a new run that begins at a candidate of another, which stays as it is."""

from __future__ import annotations

from pathlib import Path

from agents.coder.protocol import Draft
from graphs.run.assembly import start_run
from graphs.run.evaluators import LOCAL
from graphs.run.fork import FORK, Fork, fork_of
from graphs.run.records import Delivery
from graphs.run.settings import RunSettings
from tools.errors import UserError
from tools.hardware.devices import choose_devices
from tools.profiling.ncu import Counters
from tools.records import ROOT, Action, Baselines, Candidate, Evaluation, Plan, Problem, Profile, content_hash
from tools.tracing import RunStore
from tools.tracing.store import INHERITED


def fork_run(record: RunStore, candidate: Candidate, settings: RunSettings, home: Path) -> RunStore:
    """Make a run below `home`/runs that begins at `candidate` of `record`'s run; its problem, target and policy stay the same."""
    problem = next(iter(record.all("problem", Problem).values()))
    # the candidate stands in the place of whatever that run began with
    settings = settings.model_copy(update={"start": "", "start_file": "", "parents": "none"})
    baselines = record.get("baselines", problem.id, Baselines)
    judged = _evaluation(record, candidate) if baselines and _judges_alike(settings, baselines) else None
    return start_run(problem, settings, home, taken=lambda store: _take_along(record, store, candidate, judged))


def chosen_candidate(record: RunStore, prefix: str) -> Candidate:
    """The candidate whose id begins with `prefix`; without one the delivered, or else the fastest that passed."""
    names = [name for name in record.names("candidate") if name.startswith(prefix)] if prefix else _best(record)
    if len(names) != 1:
        what = f"{len(names)} candidates of {record.meta('run')} start with {prefix!r}." if prefix else "No candidate of that run passed."
        raise UserError(what, f"Name one with --candidate: kernelwright trace {record.meta('run')}.")
    found = record.candidate(names[0])
    assert found is not None
    return found


def _best(record: RunStore) -> list[str]:
    delivery = next(iter(record.all("delivery", Delivery).values()), None)
    if delivery is not None and (name := delivery.unconfirmed or delivery.candidate) != ROOT:
        return [name]
    timed = {one.candidate: one.speedup for one in record.all("evaluation", Evaluation).values() if one.speedup}
    return [max(timed, key=lambda name: timed[name])] if timed else []


def _evaluation(record: RunStore, candidate: Candidate) -> tuple[str, Evaluation] | None:
    """The search's own evaluation of a candidate, with its key."""
    return next(iter(record.all("evaluation", Evaluation, subject=candidate.id).items()), None)


def _judges_alike(settings: RunSettings, baselines: Baselines) -> bool:
    """Whether the fork's evaluator measures where that run's did, and estimates where it did: times of both are never mixed."""
    return settings.evaluator != LOCAL or bool(choose_devices(settings.devices)) == bool(baselines.samples)


def _take_along(record: RunStore, store: RunStore, candidate: Candidate, judged: tuple[str, Evaluation] | None) -> None:
    plan = record.get("plan", content_hash(candidate.parent, candidate.action.id), Plan)
    known = _evaluation(record, candidate)
    fork = Fork(
        run=record.meta("run"),
        candidate=candidate.id,
        draft=Draft(source=candidate.source, schedule=candidate.schedule, notes=candidate.notes, idea=candidate.idea),
        coder=candidate.coder,
        steps=_steps(record, candidate),
        rationale=plan.rationale if plan else "",
        speedup=known[1].speedup if known else None,
        tier=known[1].tier if known else None,
        judged=judged is not None,
    )
    store.put(FORK, FORK, fork)
    if judged is not None:
        _take_judgement(record, store, *judged)


def _take_judgement(record: RunStore, store: RunStore, key: str, evaluation: Evaluation) -> None:
    """Copy what was measured of the reference and of the candidate, of one session and one tier."""
    for problem, baselines in record.all("baselines", Baselines).items():
        store.put("baselines", problem, baselines)
    store.put("evaluation", key, evaluation, subject=evaluation.candidate)
    store.set_meta(INHERITED, key)
    if counters := record.get("counters", key, Counters):
        store.put("counters", key, counters, subject=evaluation.candidate)
    if profile := record.get("profile", evaluation.candidate, Profile):
        store.put("profile", evaluation.candidate, profile)


def _steps(record: RunStore, candidate: Candidate) -> tuple[Action, ...]:
    """Actions from the reference to a candidate, through the run too that this one was forked from."""
    steps = [candidate.action]
    seen = {candidate.id}
    while candidate.parent not in (ROOT, *seen) and (parent := record.candidate(candidate.parent)) is not None:
        steps.append(parent.action)
        seen.add(parent.id)
        candidate = parent
    before = fork_of(record)
    first = before.steps if before and candidate.id == before.candidate else (steps[-1],)
    return (*first, *reversed(steps[:-1]))
