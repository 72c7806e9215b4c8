"""A pass over the replay buffer: finds whose promises and outcomes part, has them rewritten, and logs every change."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable

from knowledge.learning.calibration import Calibration, calibrate
from knowledge.learning.replay import by_strategy, experiences
from knowledge.lessons.writers import NOTICEABLE, Case, LessonWriter, Proposal, bounded, case_of, statistical
from knowledge.log.entry import Rewrite
from knowledge.log.event_log import EventKind, EventLog, Writer
from knowledge.log.fold import Fold
from knowledge.recall.ageing import Moment
from tools.errors import KernelwrightError
from tools.records import Record


class Update(Record):
    """What one pass did."""

    by: str
    outcomes: int
    """Outcomes since the pass before."""
    considered: int
    """Strategies they were credited to that have been tried often enough."""
    rewritten: tuple[str, ...]
    """Ids of strategies whose words or prediction changed."""
    merged: tuple[str, ...] = ()
    """Ids of near-duplicates that went into others."""
    calibration: Calibration | None = None
    """Agreement of the predictions among these outcomes, before anything was rewritten."""
    notes: tuple[str, ...] = ()
    """What the writer could not do, one sentence each."""


def last_update(log: EventLog) -> int:
    """`seq` of the last outcome that a pass has seen; 0 before the first pass."""
    return max((int(event.body["through"]) for event in log.read(kinds=(EventKind.UPDATE,))), default=0)


def runs_since_update(log: EventLog) -> int:
    """Count the runs that ended since the last pass."""
    passes = log.read(kinds=(EventKind.UPDATE,))
    return len(log.read(after=passes[-1].seq if passes else 0, kinds=(EventKind.RUN,)))


async def propose(cases: list[Case], writer: LessonWriter) -> tuple[dict[str, tuple[Proposal, str]], list[str]]:
    """Ask the writer about each case; where it fails, the statistics write, and a note says so."""
    proposals: dict[str, tuple[Proposal, str]] = {}
    notes: list[str] = []
    for case in cases:
        by = writer.name
        try:
            found = await writer.rewrite(case)
        except KernelwrightError as error:
            found, by = statistical(case), "statistics"
            note = f"{writer.name} could not rewrite: {error.what} The statistics did."
            notes += [note] if note not in notes else []
        if found is not None:
            proposals[case.id] = found, by
    return proposals, notes


def cases_since(log: EventLog, fold: Fold, after: int, moment: Moment) -> tuple[list[Case], int, int, Calibration | None]:
    """Put together the cases of all strategies credited since `after`: cases, outcomes, last `seq`, calibration."""
    seen = experiences(log)
    fresh = [one for one in seen if one.seq > after]
    mine = by_strategy(seen, fold.aliases)
    touched: dict[str, None] = {}
    for one in fresh:
        for name in one.changed:
            if entry := fold.resolve(name):
                touched[entry.id] = None
    cases = []
    for name in touched:
        entry = fold.entries[name]
        if entry.retired is None and (case := case_of(entry, mine.get(name, []), moment)):
            cases.append(case)
    measured = calibrate(fresh, estimated=False)
    return cases, len(fresh), seen[-1].seq if seen else 0, measured or calibrate(fresh, estimated=True)


def write(
    log: EventLog,
    fold: Fold,
    cases: list[Case],
    proposals: dict[str, tuple[Proposal, str]],
    close: Callable[[Writer, tuple[str, ...]], None] = lambda writer, rewritten: None,
) -> tuple[str, ...]:
    """Log the rewrites in one transaction, and what `close` adds to it; return the ids of what changed."""
    seqs = {case.id: fold.entries[case.id].text_seq for case in cases}
    rewritten = []
    with log.writing() as writer:
        fold.follow(log)
        for case in cases:
            made = _rewrite(case, proposals.get(case.id))
            # somebody else rewrote it while the writer was thinking: theirs stays until the next pass
            if made is not None and fold.entries[case.id].text_seq == seqs[case.id]:
                key = f"rewrite:{case.id}:{seqs[case.id]}:{len(case.strategy.trials)}"
                if writer.add(EventKind.REWRITE, key, case.id, made.model_dump(mode="json", exclude={"seq", "at"})):
                    rewritten.append(case.id)
        close(writer, tuple(rewritten))
    fold.follow(log)
    return tuple(rewritten)


def close_pass(log: EventLog, through: int, update: Update) -> None:
    """Log that the replay buffer was worked through up to an outcome."""
    with log.writing() as writer:
        writer.add(EventKind.UPDATE, f"update:{uuid.uuid4().hex}", "", {"through": through, **update.model_dump(mode="json")})


def _rewrite(case: Case, proposed: tuple[Proposal, str] | None) -> Rewrite | None:
    """What changes: the words where the writer has others, the prediction where it is off by more than can be overlooked."""
    proposal, by = proposed or (None, "statistics")
    before = case.strategy
    expected, remark = bounded(case, proposal.expected_gain if proposal else None)
    is_off = before.expected_gain is None or abs(math.log(before.expected_gain / expected)) > NOTICEABLE
    gains = case.changes.basis != "none" and is_off
    words = proposal.lesson if proposal and proposal.lesson != before.lesson else None
    if words is None and not gains:
        return None
    return Rewrite(
        lesson=(before.lesson, words) if words is not None else None,
        expected_gain=(before.expected_gain, expected) if gains else None,
        reason=(proposal.reason if proposal else "The prediction was off.") + remark,
        by=by,
    )
