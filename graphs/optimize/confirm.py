"""The end of a run: confirm the best candidates in new processes with new seeds, and deliver the first that holds."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agents.models import BudgetReached
from agents.planner.room import no_room
from agents.reviewer.protocol import Review
from graphs.optimize.evidence import keep_evidence
from graphs.run.context import Services
from graphs.run.counted import count_champion
from graphs.run.judge import judge
from graphs.run.records import OTHER_BASELINES, Delivery
from graphs.run.steering import is_vetoed
from graphs.run.waiting import pausing
from tools.evaluation.other_flags import other_baselines
from tools.records import ROOT, Against, Baselines, Evaluation, Profile, Timing, Verdict

ATTEMPTS = 3
"""Candidates that a confirmation may find wrong or too slow before the reference is kept."""
MOST = 6
"""Candidates confirmed at most: one that could not be judged says nothing about the next."""
KERNEL, UNCONFIRMED = "kernel.py", "unconfirmed.py"
"""In the run's folder `result`: what is delivered, or what could not be confirmed."""
_UNJUDGED = (Verdict.INFRASTRUCTURE, Verdict.TIMED_OUT)
"""Of a confirmation: the candidate passed the search, and this does not speak against it."""


async def deliver(services: Services, candidates: Sequence[str], ended: str) -> Delivery:
    """Confirm `candidates` from the fastest down and write the first that holds into the run's `result/` folder."""
    known = services.store.get("delivery", services.run, Delivery)
    if known is not None:
        return known
    await _time_other_flags(services)
    reasons: list[str] = []
    unjudged: list[str] = []
    for name in _promising(services, candidates)[:MOST]:
        if len(reasons) - len(unjudged) >= ATTEMPTS:
            break
        request = services.request(services.candidate(name), confirm=True)
        try:
            evaluation = await judge(services, request)
        except BudgetReached as reached:
            unjudged.append(name)
            reasons.append(f"{name}: {_as_clause(reached.what)}")
            continue
        if evaluation.verdict is Verdict.PASS:
            await count_champion(services, request)
            keep_evidence(services, request, evaluation)
        reason = shortfall(evaluation, services.settings.floor, services.settings.against)
        if not reason:
            said = praise(evaluation, services.settings.against) + _as_sentence(_no_room(services, name))
            return _write(services, Delivery(candidate=name, evaluation=request.key, reason=said, ended=ended))
        unjudged += [name] * (evaluation.verdict in _UNJUDGED or not _is_vouched_for(evaluation))
        reasons.append(f"{name}: {reason}")
    if unjudged:
        return _write(services, _unconfirmed(services, unjudged[0], reasons, ended))
    obstacle = _obstacle(services, candidates)
    why = "; ".join(reasons) or obstacle or _no_room(services, ROOT) or await _why_nothing(services, candidates)
    return _write(services, Delivery(candidate=ROOT, evaluation="", reason=f"Keep the reference: {why}.", ended=ended, unjudged=obstacle))


def _unconfirmed(services: Services, name: str, reasons: list[str], ended: str) -> Delivery:
    """Say of the best candidate whose confirmation could not be judged that it is there, and is not delivered."""
    evaluation = services.evaluation(name)
    assert evaluation is not None
    why = next(reason for reason in reasons if reason.startswith(f"{name}: ")).removeprefix(f"{name}: ")
    others = f"; {len(reasons) - 1} more could not be confirmed either" if len(reasons) > 1 else ""
    gain = f"{evaluation.speedup or 0.0:.2f}x, {evaluation.tier}"
    said = (
        f"Not confirmed: the best that passed the search, {name} ({gain}), ended as {why}{others}. "
        "It is written as unconfirmed and not delivered: keep the reference until `kernelwright evaluate` says PASS."
    )
    return Delivery(candidate=ROOT, evaluation="", reason=said, ended=ended, unconfirmed=name)


def _obstacle(services: Services, candidates: Sequence[str]) -> str:
    """Say why no candidate could be judged; empty where one was, or where there is none."""
    found = [evaluation for name in candidates if (evaluation := services.evaluation(name))]
    if not found or any(evaluation.verdict is not Verdict.INFRASTRUCTURE for evaluation in found):
        return ""
    return f"no candidate could be judged ({_as_clause(next(iter(found[0].notes), 'no reason given'))})"


def _as_clause(sentence: str) -> str:
    return sentence.strip().removesuffix(".")


async def _time_other_flags(services: Services) -> None:
    """Time the reference under the flags of the other policies that were asked for."""
    store = services.store
    left = [name for name in services.settings.baselines if store.get(OTHER_BASELINES, name, Baselines) is None]
    with pausing():
        found = await other_baselines(services.pool, services.problem, services.sheet, left)
    for name, baselines in found.items():
        store.put(OTHER_BASELINES, name, baselines)


def _no_room(services: Services, name: str) -> str:
    """Say that a candidate, or the reference, leaves nothing to gain; empty where that is not so, or not known."""
    profile = services.store.get("profile", name, Profile)
    return no_room(profile, services.sheet, services.settings.against) if profile else ""


def _as_sentence(clause: str) -> str:
    return f" {clause[0].upper()}{clause[1:]}." if clause else ""


async def _why_nothing(services: Services, candidates: Sequence[str]) -> str:
    limits = await services.team.coder.limits(services.problem)
    said = f". What the {services.team.coder.name} coder cannot generate yet: {'; '.join(limits)}" if limits else ""
    beaten = rival(services.store.get("baselines", services.problem.id, Baselines), services.settings.against)
    faster = f"no candidate was right and faster than {beaten} (by more than the floor of {services.settings.floor:g}x)"
    if candidates and not any(services.evaluation(name) for name in candidates):
        faster = "no candidate was judged in the time that there was"
    return (faster if candidates else "no candidate could be written") + said


def rival(baselines: Baselines | None, against: Against) -> str:
    """Name what a kernel had to beat: the reference, or what a compiler makes of it where that is known to be faster."""
    us = {name: sample.median_us for name, sample in baselines.samples.items()} if baselines else {}
    name = against if against in us else min(us, key=us.__getitem__, default="eager")
    if name == "eager":
        return "the reference"
    compiled = "torch.compile" + ("" if name == "compile" else f"'s {name}")
    return f"{compiled} of the reference, {us['eager'] / us[name]:.2f}x as fast as eager"


def _promising(services: Services, candidates: Sequence[str]) -> list[str]:
    """Passing candidates with a speed-up above the trivial-gain floor, best first; of equal ones the one that came first; none vetoed."""
    speedups = {}
    for name in candidates:
        evaluation = services.evaluation(name)
        # a check that a reviewer asked for is this very confirmation: what failed it need not be tried
        failed = any(review.verdict is not Verdict.PASS for review in services.store.all("review", Review, subject=name).values())
        failed = failed or is_vetoed(services.store, name)
        if evaluation and not failed and evaluation.verdict is Verdict.PASS:
            speedup = _baseline(evaluation.timing, services.settings.against)[1][0] if evaluation.timing else evaluation.speedup or 0.0
            if speedup > services.settings.floor:
                speedups[name] = speedup
    return sorted(speedups, key=lambda name: -speedups[name])


def _baseline(timing: Timing, against: Against) -> tuple[str, tuple[float, float, float]]:
    """Name the baseline that a kernel has to beat, with its speed-up over it and that one's interval."""
    if against != "better" and against in timing.speedups:
        return against, timing.speedups[against]
    return min(timing.speedups.items(), key=lambda item: item[1][0])


def shortfall(evaluation: Evaluation, floor: float, against: Against = "better") -> str:
    """Say why a confirming evaluation does not hold; empty where the lower end of its speed-up lies above `floor`."""
    if evaluation.verdict is not Verdict.PASS:
        note = next(iter(evaluation.notes), "") if evaluation.verdict in _UNJUDGED else ""
        return f"{evaluation.verdict} when confirmed" + (f" ({_as_clause(note)})" if note else "")
    if evaluation.timing:
        name, (value, low, _) = _baseline(evaluation.timing, against)
        if low > floor and not _is_vouched_for(evaluation):
            why = f" ({_as_clause(evaluation.timing.unsealed)})" if evaluation.timing.unsealed else ""
            alone = f"only its own process says so: its time is {evaluation.timing.tier}, not bracketed and not sealed{why}"
            return f"{value:.3f}x against {name} when confirmed, but {alone}"
        return "" if low > floor else f"{value:.3f}x against {name} when confirmed, {_too_little(low, floor)}"
    if evaluation.estimate is None:
        return "right, but its time could neither be measured nor estimated"
    speedup = evaluation.estimate.speedup
    return "" if speedup > floor else f"an estimated {speedup:.3f}x when confirmed, not above the floor of {floor:.2f}x"


def _is_vouched_for(evaluation: Evaluation) -> bool:
    """Whether more than the candidate's own process stands for its time, where it was measured."""
    return evaluation.timing is None or evaluation.timing.is_vouched_for


def _too_little(low: float, floor: float) -> str:
    if low <= 1.0:
        return f"not beyond the noise (lower end {low:.3f}x)"
    return f"too little to deliver (lower end {low:.3f}x, floor {floor:.2f}x)"


def praise(evaluation: Evaluation, against: Against) -> str:
    """Say how fast a confirmed kernel is, against what, how far to trust that, and what is not in it."""
    if evaluation.timing:
        name, (value, low, high) = _baseline(evaluation.timing, against)
        others = "".join(f", {one[0]:.2f}x against {other}" for other, one in evaluation.timing.speedups.items() if other != name)
        alone = len(evaluation.timing.speedups) == 1
        beside = others if against != "better" else ", the only baseline that could be timed" if alone else ", the faster baseline"
        packed = _packed(evaluation, name, f" ({evaluation.timing.packing.tier})" if evaluation.timing.packing else "")
        said = f"Right, and {value:.2f}x [{low:.2f}, {high:.2f}] against {name}{beside}; measured ({evaluation.timing.tier})."
        return f"{said}{_by_shape(evaluation)}{packed}"
    assert evaluation.estimate is not None
    packed = _packed(evaluation, "", ", estimated")
    said = f"Right, and an estimated {evaluation.estimate.speedup:.2f}x against eager; nothing was timed."
    return f"{said}{_by_shape(evaluation)}{_emulated(evaluation)}{packed}"


def _by_shape(evaluation: Evaluation) -> str:
    """Say how fast it is at each shape, the worst first; nothing where the problem has one alone."""
    found = sorted((shape.evaluation.speedup or 0.0, shape.name) for shape in evaluation.shapes)
    return f" By shape: {', '.join(f'{name} {value:.2f}x' for value, name in found)}." if found else ""


def _emulated(evaluation: Evaluation) -> str:
    """Say which dtypes no hardware computed when it was judged."""
    found = evaluation.correctness.emulated if evaluation.correctness else ()
    return f" Judged with {' and '.join(found)} emulated in float32." if found else ""


def _packed(evaluation: Evaluation, against: str, trust: str) -> str:
    """Say what packing the weights takes beside that; nothing where there is no step for it."""
    if evaluation.packing_us is None:
        return ""
    calls = evaluation.packing_pays_after(against)
    paid = f", which {calls} call{'s' if calls != 1 else ''} pay{'s' if calls == 1 else ''} for" if calls else ""
    return f" Not in that: its weights are packed once, in {evaluation.packing_us:,.0f} µs{trust}{paid}."


def _write(services: Services, delivery: Delivery) -> Delivery:
    folder = services.store.folder / "result"
    folder.mkdir(exist_ok=True)
    evaluation = services.store.get("evaluation", delivery.evaluation, Evaluation) if delivery.evaluation else None
    if delivery.candidate != ROOT:
        (folder / KERNEL).write_text(services.guarded(services.candidate(delivery.candidate)))
    if delivery.unconfirmed:
        (folder / UNCONFIRMED).write_text(services.guarded(services.candidate(delivery.unconfirmed)))
    facts = {
        "run": services.run,
        "problem": services.problem.name,
        "policy": services.problem.policy.model_dump(mode="json"),
        "delivery": delivery.model_dump(mode="json"),
        "evaluation": evaluation.model_dump(mode="json") if evaluation else None,
    }
    (folder / "result.json").write_text(json.dumps(facts, indent=1))
    services.store.put("delivery", services.run, delivery)
    return delivery
