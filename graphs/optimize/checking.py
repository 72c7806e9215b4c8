"""The checks that a reviewer asked for: they can take acceptance away, and nothing else."""

from __future__ import annotations

from agents.models import BudgetReached
from agents.reviewer.protocol import Check, Review
from graphs.run.context import Services
from graphs.run.judge import judge
from tools.records import Candidate, Verdict


async def checked_review(services: Services, candidate: Candidate, review: Review) -> Review:
    """Do what an accepting review asks for; where a check fails, or no budget is left for it, the review says so.

    The end of the run asks the same question about a champion, and finds the answer: for it a check costs nothing.
    """
    if not review.accepted or Check.CONFIRM not in review.checks:
        return review
    if limit := services.exhausted():
        return review.model_copy(update={"concerns": (*review.concerns, f"Not checked further: the budget of {limit} is used up.")})
    try:
        evaluation = await judge(services, services.request(candidate, confirm=True))
    except BudgetReached as reached:
        return review.model_copy(update={"concerns": (*review.concerns, f"Not checked further: {reached.what}")})
    if evaluation.verdict in (Verdict.INFRASTRUCTURE, Verdict.TIMED_OUT):
        return review.model_copy(update={"concerns": (*review.concerns, f"Not checked further: it ended as {evaluation.verdict}.")})
    if evaluation.verdict is Verdict.PASS:
        return review.model_copy(update={"concerns": (*review.concerns, "Checked further as asked: it passed.")})
    reason = f"Accepted at first; judged again as the reviewer asked it was {evaluation.verdict}. {review.reason}"
    return review.model_copy(update={"verdict": evaluation.verdict, "accepted": False, "gain": None, "reason": reason})
