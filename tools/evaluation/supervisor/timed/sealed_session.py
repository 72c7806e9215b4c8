"""The sealed session: whether a candidate can be timed without its host code, and what is then published."""

from __future__ import annotations

from typing import Literal, Protocol

from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.checking.runner_client import SET_UP
from tools.evaluation.wire.jobs.builder import BuildAnswer
from tools.evaluation.wire.launch_plan import LaunchPlan
from tools.evaluation.wire.library_calls import OTHERWISE
from tools.evaluation.wire.plan_faults import fault
from tools.records import EvaluationRequest, Timing, Verdict

STAGES = frozenset(["confirm"])
"""When a candidate is timed sealed as well: where its figure will be published."""
AGREEMENT = 0.15
"""The medians of the candidate's own process and of the sealed call may differ by this share of the sealed one,"""
AGREEMENT_US = 5.0
"""or by this much, whichever is more: two sessions of one kernel differ by a few per cent, short ones by what an event costs."""
_OURS = frozenset([Verdict.WRONG, Verdict.UNSTABLE, Verdict.TIMED_OUT])
"""Endings of a sealed session that say no more than that the plan is not the candidate: its own process gave right answers."""


class Case(Protocol):
    """What an evaluation knows so far, as far as it is needed here."""

    notes: list[str]
    build: BuildAnswer


def unsealable(build: BuildAnswer, request: EvaluationRequest) -> str:
    """Say why a candidate cannot be timed without its host code; empty where it can."""
    if build.plan is None:
        return build.unsealable or "its host code could not be followed without a GPU"
    return fault(build.plan, request.problem.abi, request.target)


def is_sealable(build: BuildAnswer, request: EvaluationRequest) -> bool:
    """Whether a candidate is timed sealed as well."""
    return request.stage in STAGES and not unsealable(build, request)


def published(request: EvaluationRequest, case: Case, own: Timing, sealed: Outcome | Timing | None) -> Outcome | Timing:
    """Choose what is published of a candidate: what was found of its plan alone, held against its `own` process's time.

    Where it cannot be sealed, the note says why and `own` stays, with the reason; in a search, too, where it can still be mended.
    """
    reason = unsealable(case.build, request)
    if reason:
        case.notes.append(f"Not sealed: {reason}.")
        return own.model_copy(update={"unsealed": reason})
    if sealed is None:
        return own
    if isinstance(sealed, Timing):
        return _agreed(case, sealed, own)
    told = (sealed.notes or ["no reason given"])[0]
    if sealed.verdict in _OURS or SET_UP in told or OTHERWISE in told:
        reason = f"its recorded launches do not stand for it ({told})"
        case.notes.append(f"Not sealed: {reason}")
        return own.model_copy(update={"unsealed": reason})
    return Outcome(sealed.verdict, sealed.rule, None, [f"Sealed, without its host code: {note}" for note in sealed.notes], sealed.log)


def _agreed(case: Case, found: Timing, own: Timing) -> Outcome | Timing:
    """Choose between two timings of one candidate; its own process may be slower, and faster only where it can have overlapped work."""
    plan = case.build.plan
    assert plan is not None
    both = (
        f"without its host code the median is {found.candidate.median_us:.4g} µs, "
        f"in its own process it is {own.candidate.median_us:.4g} µs ({own.tier}; they may differ by {AGREEMENT:.0%} or {AGREEMENT_US:g} µs)"
    )
    how = _said(plan)
    verdict = compare(found.candidate.median_us, own.candidate.median_us)
    beside = own.model_copy(update={"sealed_us": found.candidate.median_us})
    chained = own.bracket.median_us if own.bracket is not None else None
    if verdict == "own is slower" and chained is not None and compare(found.candidate.median_us, chained) == "agree":
        case.notes.append(f"Sealed: {both}, and {chained:.4g} µs where calls were issued ahead: its host was late.{how}")
        return found
    if verdict == "own is slower":
        case.notes.append(f"Not sealed: {both}, so its host code adds to what its kernels need, as whoever uses it will find.{how}")
        return beside
    if plan.crowded and own.candidate.median_us > found.candidate.median_us:
        case.notes.append(f"Sealed beside: {both}; its own process's is published, whose launches are no graph.{how}")
        return beside
    excuse = "its streams run one after the other" if plan.several_streams else "its configurations are chosen anew" if plan.tuned else ""
    if verdict == "own is faster" and not excuse:
        return Outcome(Verdict.TIMING_INCONSISTENT, notes=[f"Sealed: {both}."])
    case.notes.append(f"Sealed: {both}{f'; sealed, {excuse}' if verdict == 'own is faster' else ''}.{how}")
    return found


def _said(plan: LaunchPlan) -> str:
    """Say what of a plan is not one launch after the other; nothing where all is."""
    if plan.crowded:
        return f" Its {len(plan.steps)} launches are replayed as one CUDA graph, so that the host is not timed."
    return f" What it replays as a CUDA graph is captured anew, in {len(plan.graphs)}." if plan.graphs else ""


def compare(sealed_us: float, own_us: float) -> Literal["agree", "own is faster", "own is slower"]:
    """Hold the median of a candidate's own process against its sealed one."""
    if abs(sealed_us - own_us) <= max(AGREEMENT * sealed_us, AGREEMENT_US):
        return "agree"
    return "own is faster" if own_us < sealed_us else "own is slower"
