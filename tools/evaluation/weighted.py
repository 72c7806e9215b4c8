"""Judges a candidate at every shape of its problem, and adds the times up by the shapes' weights."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from tools.evaluation.supervisor.timed.statistics import speedup
from tools.records import (
    Baselines,
    Correctness,
    Estimate,
    Evaluation,
    EvaluationRequest,
    OutputError,
    Problem,
    ProblemShape,
    Sample,
    ShapeResult,
    Tier,
    Timing,
    Verdict,
)

T = TypeVar("T")
_OTHERS = 1
"""Small sizes at which a kernel is judged again beside each shape but the first: all of them were tried with that."""
_TRUST = (Tier.SEALED, Tier.BRACKETED, Tier.IN_PROCESS)
"""From the most trusted down: the least of the shapes' is that of their sum."""


async def evaluate_shapes(evaluate: Callable[[EvaluationRequest], Awaitable[Evaluation]], request: EvaluationRequest) -> Evaluation:
    """Judge at the first shape, and where it passes, at the others side by side; what is only compiled or checked is so at the first."""
    shapes = request.problem.shapes if request.depth == "whole" else request.problem.shapes[:1]

    def job(place: int) -> EvaluationRequest:
        variants = request.variants[:_OTHERS] if place else request.variants
        return request.model_copy(update={"problem": request.problem.at(shapes[place]), "variants": variants})

    found = [await evaluate(job(0))]
    if _goes_on(found[0]) and len(shapes) > 1:
        found += await side_by_side(evaluate(job(place)) for place in range(1, len(shapes)))
    for shape, one in zip(shapes, found, strict=False):
        if not _goes_on(one):
            return one.model_copy(update={"notes": (f"At the shape {shape.name!r}.", *one.notes), **_spent(found)})
    return found[0] if request.depth != "whole" else added(shapes, found)


def _goes_on(one: Evaluation) -> bool:
    return one.verdict in (Verdict.PASS, Verdict.BUILT)


async def side_by_side(jobs: Iterable[Awaitable[T]]) -> list[T]:
    """Await all; where one raises, or this is cancelled, the others are cancelled and ended."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def baselines_of_shapes(baselines: Callable[[Problem], Awaitable[Baselines]], problem: Problem) -> Baselines:
    """Time the reference at each shape, side by side as far as the device allows: a call on average by the weights."""
    found = await side_by_side(baselines(problem.at(shape)) for shape in problem.shapes)
    weights = _shares(problem.shapes)
    estimates = [one.estimate for one in found if one.estimate]
    names = [name for name in found[0].samples if all(name in one.samples for one in found)]
    return found[0].model_copy(
        update={
            "samples": {name: _sample([one.samples[name] for one in found], weights) for name in names},
            "estimate": _estimate(estimates, weights) if len(estimates) == len(found) else None,
            "notes": _said(note for one in found for note in one.notes),
            "steps": {
                f"{shape.name}: {step}": span for shape, one in zip(problem.shapes, found, strict=True) for step, span in one.steps.items()
            },
        }
    )


def added(shapes: Sequence[ProblemShape], found: Sequence[Evaluation]) -> Evaluation:
    """Make one evaluation of those at each shape, all of which it passed."""
    weights = _shares(shapes)
    timings = [one.timing for one in found if one.timing]
    estimates = [one.estimate for one in found if one.estimate]
    checked = [one.correctness for one in found if one.correctness]
    kernels = {kernel.name: kernel for one in reversed(found) for kernel in one.kernels}
    compiled = {
        (launch.name, repr(sorted(launch.constants.items())), launch.num_warps, launch.num_stages)
        for one in found
        for launch in one.launches
        if launch.kind == "triton"
    }
    notes = _said(note for one in found for note in one.notes)
    return found[0].model_copy(
        update={
            "correctness": _correctness(checked),
            "timing": _timing(timings, weights) if len(timings) == len(found) else None,
            "estimate": _estimate(estimates, weights) if len(estimates) == len(found) else None,
            "shapes": tuple(
                ShapeResult(name=shape.name, weight=shape.weight, evaluation=one) for shape, one in zip(shapes, found, strict=True)
            ),
            "kernels": tuple(reversed(kernels.values())),
            "notes": (*notes, f"Its kernels are compiled in {len(compiled)} configurations for {len(shapes)} shapes.")
            if compiled
            else notes,
            "seeds": tuple(seeds for one in found for seeds in one.seeds),
            **_spent(found),
        }
    )


def _shares(shapes: Sequence[ProblemShape]) -> list[float]:
    whole = sum(shape.weight for shape in shapes)
    return [shape.weight / whole for shape in shapes]


def _spent(found: Sequence[Evaluation]) -> dict[str, object]:
    phases = dict.fromkeys(phase for one in found for phase in one.phase_seconds)
    return {
        "seconds": sum(one.seconds for one in found),
        "gpu_seconds": sum(one.gpu_seconds for one in found),
        "phase_seconds": {phase: sum(one.phase_seconds.get(phase, 0.0) for one in found) for phase in phases},
    }


def _correctness(checked: Sequence[Correctness]) -> Correctness:
    """Keep of each output the check that came nearest to its limit; the sizes of all."""
    worst: dict[str, OutputError] = {}
    for output in (output for one in checked for output in one.outputs):
        if output.output not in worst or output.severity > worst[output.output].severity:
            worst[output.output] = output
    return checked[0].model_copy(
        update={
            "outputs": tuple(worst.values()),
            "calls": sum(one.calls for one in checked),
            "sizes": _said(size for one in checked for size in one.sizes),
            "emulated": _said(dtype for one in checked for dtype in one.emulated),
        }
    )


def _mean(values: Iterable[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))


def _sample(samples: Sequence[Sample], weights: Sequence[float]) -> Sample:
    return Sample(
        median_us=_mean((one.median_us for one in samples), weights),
        low_us=_mean((one.low_us for one in samples), weights),
        high_us=_mean((one.high_us for one in samples), weights),
        count=min(one.count for one in samples),
    )


def _timing(timings: Sequence[Timing], weights: Sequence[float]) -> Timing:
    """Add sessions up; each shape's own, with its raw times, stands beside it."""
    names = [name for name in timings[0].baselines if all(name in one.baselines for one in timings)]
    candidate = _series([one.raw.candidate if one.raw else () for one in timings], weights)
    baselines = {name: _sample([one.baselines[name] for one in timings], weights) for name in names}
    mine = _sample([one.candidate for one in timings], weights)
    speedups = {}
    for name in names:
        theirs = _series([one.raw.baselines.get(name, ()) if one.raw else () for one in timings], weights)
        _, low, high = speedup(theirs, candidate) if theirs and candidate else (0.0, 0.0, float("inf"))
        speedups[name] = (baselines[name].median_us / mine.median_us, low, high)
    # of those that only their own process timed, more stands for each
    alone = all(one.is_vouched_for for one in timings) and any(one.sealed_us is not None for one in timings)
    least = max((one.tier for one in timings), key=_TRUST.index)
    return timings[0].model_copy(
        update={
            "tier": least,
            "candidate": mine,
            "bracket": None,
            "baselines": baselines,
            "speedups": speedups,
            "throttled": any(one.throttled for one in timings) if any(one.throttled is not None for one in timings) else None,
            "sealed_us": _mean((one.sealed_us or one.candidate.median_us for one in timings), weights) if alone else None,
            "unsealed": next((one.unsealed for one in timings if one.unsealed), ""),
            "raw": None,
        }
    )


def _series(runs: Sequence[Sequence[float]], weights: Sequence[float]) -> list[float]:
    """Add raw times up turn by turn, as far as every shape has them."""
    return [_mean(turn, weights) for turn in zip(*runs, strict=False)]


def _estimate(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    return estimates[0].model_copy(
        update={
            "candidate_us": _mean((one.candidate_us for one in estimates), weights),
            "eager_us": _mean((one.eager_us for one in estimates), weights),
            "floor_us": _mean((one.floor_us for one in estimates), weights),
        }
    )


def _said(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))
