"""A bounded pass in the middle of a run: what its latest outcomes gainsay most is rewritten before the next of its plans is made."""

from __future__ import annotations

from typing import Any

from knowledge.learning.calibration import calibrate
from knowledge.learning.replay import by_strategy, experiences
from knowledge.lessons.update import Update
from knowledge.lessons.writers import Case, case_of
from knowledge.log.event_log import EventKind, EventLog, Writer
from knowledge.log.fold import Fold
from knowledge.recall.ageing import Moment


def reflection_key(run: str, number: int) -> str:
    """One pass of one run is made once."""
    return f"reflect:{run}:{number}"


def earlier(log: EventLog, run: str, number: int) -> tuple[Update | None, int]:
    """What this very pass did, if it was made before; and the last `seq` that the run's passes before it had seen."""
    seen = 0
    for event in log.read(kinds=(EventKind.REFLECT,)):
        if event.subject != run:
            continue
        if event.key == reflection_key(run, number):
            return Update.model_validate(event.body["update"]), seen
        seen = max(seen, int(event.body["through"]))
    return None, seen


def cases_of_run(log: EventLog, fold: Fold, run: str, after: int, most: int, moment: Moment) -> tuple[list[Case], Update, int]:
    """The cases of strategies that the run's outcomes after `after` were credited to, the widest gaps first and at most `most`.

    With them an update that says how many outcomes and strategies there were, and the last `seq` seen.
    """
    seen = experiences(log)
    fresh = [one for one in seen if one.seq > after and one.outcome.run == run]
    mine = by_strategy(seen, fold.aliases)
    entries = {entry.id: entry for one in fresh for name in one.changed if (entry := fold.resolve(name)) and entry.retired is None}
    cases = [case for name, entry in entries.items() if (case := case_of(entry, mine.get(name, []), moment))]
    cases.sort(key=lambda case: (-abs(case.gap), case.id))
    calibration = calibrate(fresh, estimated=False) or calibrate(fresh, estimated=True)
    update = Update(by="", outcomes=len(fresh), considered=len(cases), rewritten=(), calibration=calibration)
    return cases[:most], update, fresh[-1].seq if fresh else after


def note_pass(writer: Writer, run: str, number: int, through: int, update: Update) -> None:
    """Write down in the same transaction as the rewrites that the pass was made."""
    body: dict[str, Any] = {"through": through, "update": update.model_dump(mode="json")}
    writer.add(EventKind.REFLECT, reflection_key(run, number), run, body)
