"""Words the lesson of one reviewed candidate: short plain sentences that help a planner with a similar operator."""

from __future__ import annotations

from agents.reviewer.protocol import Gain, ReviewCase
from tools.logs import telling_part
from tools.records import Correctness, Evaluation, Tier, Verdict

_ENDED = {
    Verdict.BUILD_FAILED: "did not compile",
    Verdict.CRASHED: "crashed",
    Verdict.TIMED_OUT: "did not finish in time",
    Verdict.WRONG: "gave wrong results",
    Verdict.UNSTABLE: "gave other results for the same inputs",
    Verdict.CHEATED: "broke a rule of the evaluation",
    Verdict.IMPOSSIBLE_TIME: "showed a time below what the hardware can do",
    Verdict.TIMING_INCONSISTENT: "showed times that do not agree",
    Verdict.BUILT: "was built and not run",
    Verdict.INFRASTRUCTURE: "could not be judged, as the machine failed",
}
_OF_TIME = (Verdict.TIMED_OUT, Verdict.IMPOSSIBLE_TIME, Verdict.TIMING_INCONSISTENT)
"""Of these the first note says what was seen; the log may have warnings alone."""


def ended(verdict: Verdict) -> str:
    """Say in words how a failed candidate ended."""
    return _ENDED[verdict]


def failure_detail(evaluation: Evaluation, limit: int = 300) -> str:
    """Say what exactly failed: the rule, the errors, the times, or the telling part of the log; empty where nothing does."""
    if evaluation.rule:
        return f"rule {evaluation.rule}"
    if evaluation.verdict in _OF_TIME and evaluation.notes:
        return evaluation.notes[0].rstrip(".")
    if evaluation.verdict is Verdict.WRONG and evaluation.correctness and (worst := _worst(evaluation.correctness)):
        return worst
    return " ".join(telling_part(evaluation.log, limit).split())


def failure_lesson(case: ReviewCase) -> str:
    """Word what a failed candidate teaches; empty for INFRASTRUCTURE, which teaches nothing about it."""
    if case.evaluation.verdict is Verdict.INFRASTRUCTURE:
        return ""
    detail = failure_detail(case.evaluation, 200)
    said = f"{_subject(case)} {ended(case.evaluation.verdict)}{f' ({detail})' if detail else ''}."
    return said + (f" {case.candidate.repairs} repairs did not help." if case.candidate.repairs else "")


def outcome_lesson(case: ReviewCase, gain: Gain, accepted: bool) -> str:
    """Word what a passing candidate teaches: faster, slower, or no difference that the measurements can tell."""
    how = f"{gain.value:.2f} times as fast as the parent ({_interval(gain)}, {gain.tier}, {_device(case.evaluation)})"
    if accepted:
        return f"{_subject(case)} was {how}."
    if gain.high < 1:
        return f"{_subject(case)} was slower: {how}. Choose something else here."
    return f"{_subject(case)} changed nothing that can be told: {how}. Choose something else here."


def incomparable_lesson(case: ReviewCase) -> str:
    """Word what a passing candidate without a gain teaches."""
    return f"{_subject(case)} gave right results; its speed was not compared."


def _subject(case: ReviewCase) -> str:
    families = " and ".join(case.problem.work.families[:2]) or "an"
    limited = f" limited by {case.parent_profile.bottleneck}" if case.parent_profile else ""
    action = case.kept or case.plan.action
    parameters = ", ".join(f"{name}={value}" for name, value in action.parameters.items())
    return f"On a {families} operator{limited}, {action.kind}{f' with {parameters}' if parameters else ''}"


def _interval(gain: Gain) -> str:
    return "by the model" if gain.tier == Tier.ESTIMATED else f"95 % interval {gain.low:.2f} to {gain.high:.2f}"


def _device(evaluation: Evaluation) -> str:
    if evaluation.timing:
        return evaluation.timing.device
    return evaluation.estimate.target if evaluation.estimate else "no device"


def _worst(correctness: Correctness) -> str:
    failed = [output for output in correctness.outputs if not output.passed]
    if not failed:
        return ""
    worst = max(failed, key=lambda output: output.relative_l2 / output.limit_relative_l2 if output.limit_relative_l2 else 0.0)
    return (
        f"{worst.output}: relative L2 {worst.relative_l2:.2g} where {worst.limit_relative_l2:.2g} is allowed, "
        f"worst row {worst.worst_row:.2g} where {worst.limit_worst_row:.2g} is allowed"
    )
