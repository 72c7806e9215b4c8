"""A model's words about an outcome: kept beside it, and part of the lesson once a second measurement agrees."""

from __future__ import annotations

from knowledge.log.entry import Entry, Evidence, Rewrite
from knowledge.log.event_log import Writer
from knowledge.records import LONGEST, RECORD, Outcome
from tools.records import Tier, Verdict

SAID = " A model said, and a second measurement agrees: "
"""Begins what a model said in a lesson."""


def vouched(writer: Writer, entry: Entry, outcome: Outcome) -> Rewrite | None:
    """Take the words of an earlier outcome of the same action and situation that this one agrees with; None where there are none."""
    before = entry.current.lesson
    if SAID in before:
        return None
    past = next((one for evidence in entry.evidence if (one := _outcome(writer, evidence)) and one.word and agrees(one, outcome)), None)
    if past is None:
        return None
    own, record, tail = before.partition(RECORD)
    said = f"{own}{SAID}{past.word}"[: LONGEST - len(record) - len(tail)]
    return Rewrite(
        lesson=(before, f"{said}{record}{tail}"), reason=f"{past.run} and {outcome.run} agree in what came of it.", by="measurement"
    )


def _outcome(writer: Writer, evidence: Evidence) -> Outcome | None:
    """The outcome behind a trial; None where it only cited the strategy, or was not learnt here."""
    body = writer.body(f"outcome:{evidence.trial.run}:{evidence.plan}") if evidence.exact else None
    return Outcome.model_validate(body["outcome"]) if body else None


def agrees(past: Outcome, outcome: Outcome) -> bool:
    """Whether another candidate came to the same: it failed alike, or was timed and found faster, or not, like the first."""
    if past.candidate == outcome.candidate or past.verdict is not outcome.verdict:
        return False
    if outcome.verdict is not Verdict.PASS:
        return True
    return past.accepted == outcome.accepted and Tier.ESTIMATED not in (past.tier, outcome.tier)
