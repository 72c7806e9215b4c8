"""Reads out of a run's store what a row says of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from graphs.run.context import Services
from graphs.run.records import OTHER_BASELINES, Delivery
from kernelwright.bench.row import Status, Step
from tools.cost.roofline import floor_us
from tools.records import ROOT, Baselines, Candidate, Evaluation, Verdict

HERE = "here"
"""Place of what the bench's own machine judged."""


def facts_of(services: Services) -> dict[str, Any]:
    """Collect a row's fields from a run that has ended."""
    store, problem = services.store, services.problem
    delivery = store.get("delivery", services.run, Delivery)
    assert delivery is not None
    evaluations = store.all("evaluation", Evaluation)
    search = _search_evaluations(services)
    confirmed = evaluations.get(delivery.evaluation) if delivery.candidate != ROOT else None
    return {
        "status": Status.KERNEL if confirmed else Status.REFERENCE,
        "reason": delivery.reason,
        "ended": delivery.ended,
        "run": services.run,
        "problem_id": problem.id,
        "families": tuple(family.value for family in problem.work.families),
        "training": problem.abi.training,
        "right": any(one.verdict is Verdict.PASS for one in evaluations.values()),
        "best_right": _best_right(search),
        "floor_us": floor_us(problem, services.sheet),
        "verdicts": dict(Counter(one.verdict.value for one in evaluations.values())),
        "curve": curve_of(search),
        "spent": store.spent(),
        "device": services.sheet.title,
        "places": _places(services.baselines(), evaluations),
        **_baseline_facts(services.baselines(), evaluations),
        "other_baselines_us": {name: _times_us(found) for name, found in store.all(OTHER_BASELINES, Baselines).items()},
        **(_delivered_facts(confirmed) if confirmed else {}),
    }


def _places(baselines: Baselines, evaluations: dict[str, Evaluation]) -> dict[str, int]:
    judged = [baselines.place, *(one.place for one in evaluations.values())]
    return dict(Counter(place or HERE for place in judged))


def _search_evaluations(services: Services) -> list[Evaluation]:
    """Evaluations of the search, without the confirming ones, in the order in which they ended."""
    store = services.store
    keys = [services.request(candidate).key for candidate in store.all("candidate", Candidate).values()]
    found = [(store.written("evaluation", key), key) for key in dict.fromkeys(keys)]
    evaluations = [store.get("evaluation", key, Evaluation) for written, key in sorted(found) if written]
    return [one for one in evaluations if one is not None]


def curve_of(evaluations: list[Evaluation]) -> tuple[Step, ...]:
    """Best speed-up so far after each evaluation, what passed alone counting."""
    best, gpu_s, steps = 1.0, 0.0, []
    for one in evaluations:
        gpu_s += one.gpu_seconds
        best = max(best, one.speedup or 1.0)
        steps.append(Step(speedup=best, gpu_s=gpu_s))
    return tuple(steps)


def _best_right(evaluations: list[Evaluation]) -> dict[str, float]:
    passing = [one for one in evaluations if one.speedup]
    best = max(passing, key=lambda one: one.speedup or 0.0, default=None)
    if best is None:
        return {}
    return {name: value for name, (value, _, _) in best.timing.speedups.items()} if best.timing else {"eager": best.speedup or 0.0}


def _baseline_facts(baselines: Baselines, evaluations: dict[str, Evaluation]) -> dict[str, Any]:
    versions = next((one.versions for one in reversed(evaluations.values()) if one.versions), {})
    admission = baselines.admission
    unexamined = () if admission.examined else admission.marks
    return {
        "tier": baselines.tier.value,
        "baselines_us": _times_us(baselines),
        "versions": versions,
        "notes": (*baselines.notes, *unexamined),
        "admission": admission if admission.examined else None,
        "marks": admission.reasons,
    }


def _times_us(baselines: Baselines) -> dict[str, float]:
    if baselines.estimate is not None:
        return {"eager": baselines.estimate.eager_us}
    return {name: sample.median_us for name, sample in baselines.samples.items()}


def _delivered_facts(confirmed: Evaluation) -> dict[str, Any]:
    assert confirmed.correctness is not None
    worst = max(confirmed.correctness.outputs, key=lambda one: one.relative_l2)
    if confirmed.timing:
        speedups = dict(confirmed.timing.speedups)
    else:
        value = confirmed.speedup or 1.0
        speedups = {"eager": (value, value, value)}
    return {
        "speedups": speedups,
        "candidate_us": confirmed.time_us,
        "tier": confirmed.tier.value if confirmed.tier else "",
        "shapes": {one.name: (one.evaluation.time_us, one.evaluation.speedup) for one in confirmed.shapes},
        "packing_us": confirmed.packing_us,
        "packing_pays_after": confirmed.packing_pays_after(),
        "relative_l2": worst.relative_l2,
        "reference_relative_l2": worst.reference_relative_l2,
        "throttled": confirmed.timing.throttled if confirmed.timing else None,
    }
