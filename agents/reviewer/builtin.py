"""The built-in reviewer: accepts a candidate only where the interval of its gain lies above 1."""

from __future__ import annotations

from agents.reviewer.gain import Comparison, compare
from agents.reviewer.lesson import ended, failure_detail, failure_lesson, incomparable_lesson, outcome_lesson
from agents.reviewer.protocol import Gain, Review, ReviewCase
from tools.records import Evaluation, Tier, Verdict


class BuiltinReviewer:
    """Rules over the evidence; needs no model and no settings."""

    name = "builtin"

    async def review(self, case: ReviewCase) -> Review:
        """Judge one case."""
        return review(case)


def review(case: ReviewCase) -> Review:
    """Judge one case; the same case always gets the same review."""
    if case.evaluation.verdict is not Verdict.PASS:
        return _failed(case)
    compared = compare(case)
    concerns = (*compared.concerns, *_concerns(case.evaluation))
    if compared.gain is None:
        return _review(case, None, False, compared.against, incomparable_lesson(case), concerns)
    same = bool(case.parent_source) and case.candidate.source == case.parent_source
    accepted = compared.gain.low > 1 and not same
    reason = "The candidate's text is its parent's: there is nothing to accept." if same else _reason(compared, compared.gain)
    return _review(case, compared.gain, accepted, reason, outcome_lesson(case, compared.gain, accepted), concerns)


def _failed(case: ReviewCase) -> Review:
    evaluation = case.evaluation
    detail = failure_detail(evaluation)
    reason = f"{evaluation.verdict}: the candidate {ended(evaluation.verdict)}{f': {detail}' if detail else ''}."
    return _review(case, None, False, reason, failure_lesson(case), ())


def _review(case: ReviewCase, gain: Gain | None, accepted: bool, reason: str, lesson: str, concerns: tuple[str, ...]) -> Review:
    return Review(
        verdict=case.evaluation.verdict,
        accepted=accepted,
        gain=gain,
        reason=reason,
        lesson=lesson,
        concerns=concerns,
        reviewer=BuiltinReviewer.name,
    )


def _reason(compared: Comparison, gain: Gain) -> str:
    against = f"{gain.value:.3f} times as fast as {compared.against}"
    if gain.tier == Tier.ESTIMATED:
        verdict = "accepted" if gain.low > 1 else "not accepted"
        return f"Estimated {against}, {verdict}: nothing was timed, and how far the model is off here is not known."
    interval = f"95 % interval {gain.low:.3f} to {gain.high:.3f} ({gain.tier})"
    if gain.low > 1:
        return f"Measured {against}, {interval}: the whole interval is above 1."
    if gain.high < 1:
        return f"Measured {against}, {interval}: slower."
    return f"Measured {against}, {interval}: within the noise."


def _concerns(evaluation: Evaluation) -> tuple[str, ...]:
    concerns = []
    if evaluation.timing and evaluation.timing.throttled:
        concerns.append("The device throttled while it was timed.")
    if evaluation.doubt:
        concerns.append(evaluation.doubt)
    if evaluation.provenance == "library":
        concerns.append("Only library kernels ran: the candidate's own kernels did none of the work.")
    if evaluation.correctness and evaluation.timing and evaluation.correctness.executor == "interpreter":
        concerns.append("Correctness was checked in the interpreter, not on the device that was timed.")
    return tuple(concerns)
