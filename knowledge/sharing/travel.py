"""What of a log is shared with other machines, and the form in which an event travels.

Strategies learnt or imported, trials, what was ignored, outcomes, ends of runs, and retirements by hand with what undid them.
Not seeds, which come with the release; not recalls; not rewritten lessons, merges and what age retired: each machine makes these
from all the evidence that it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from knowledge.log.entry import Evidence
from knowledge.log.event_log import SCHEMA_VERSION, Event, EventKind, EventLog
from knowledge.log.migrate import upgraded
from knowledge.records import Outcome, Strategy
from tools.records import Record

TRAVELLING = (
    EventKind.STRATEGY,
    EventKind.TRIAL,
    EventKind.IGNORED,
    EventKind.OUTCOME,
    EventKind.RUN,
    EventKind.RETIRE,
    EventKind.REVERT,
)
"""In the order in which one batch is taken over: what others refer to comes first."""

BY_HAND = "retire:"
"""How the key of a retirement begins that a person made; that of `prune` begins otherwise."""


class Parcel(Record):
    """An event on its way."""

    kind: EventKind
    at: str
    key: str
    subject: str
    version: int = SCHEMA_VERSION
    body: dict[str, Any]

    @property
    def event(self) -> Event:
        """The event; it has no place in a log yet."""
        return Event(0, self.at, self.kind.value, self.key, self.subject, self.body)


def packed(log: EventLog, event: Event) -> str | None:
    """Write an event as it travels; None where it stays at home."""
    key, body = event.key, event.body
    match event.kind:
        case EventKind.STRATEGY:
            if "seed" in body:
                return None
            # two machines may learn one action in one situation, each in its own words
            key = key if key.endswith(event.subject) else f"{key}:{event.subject}"
            # sources stay at home
            body = {**body, "strategy": {name: value for name, value in body["strategy"].items() if name != "excerpt"}}
        case EventKind.RETIRE:
            if not key.startswith(BY_HAND):
                return None
        case EventKind.REVERT:
            # numbers of changes are a log's own, keys are everybody's
            undone = log.key(int(body["change"])) or ""
            if not undone.startswith(BY_HAND):
                return None
            body = {**body, "change": undone}
    return Parcel(kind=EventKind(event.kind), at=event.at, key=key, subject=event.subject, body=body).model_dump_json()


def unpacked(text: str) -> Parcel:
    """Read an event that another machine wrote; what this release cannot keep raises ValueError: a log never forgets a bad event."""
    parcel = Parcel.model_validate_json(text)
    if not 1 <= parcel.version <= SCHEMA_VERSION:
        raise ValueError(f"it is of version {parcel.version}, and this release reads 1 to {SCHEMA_VERSION}")
    if parcel.kind not in _CHECKS:
        raise ValueError(f"a {parcel.kind} is not shared")
    datetime.fromisoformat(parcel.at)
    parcel = parcel.model_copy(update={"body": upgraded(parcel.kind, parcel.version, parcel.body)})
    try:
        _CHECKS[parcel.kind](parcel)
    except (KeyError, TypeError) as error:
        raise ValueError(f"a {parcel.kind} without {error}") from error
    return parcel


def _strategy(parcel: Parcel) -> None:
    strategy = Strategy.model_validate(parcel.body["strategy"])
    if parcel.body["origin"] not in {"learnt", "imported"} or strategy.id != parcel.subject or strategy.trials:
        raise ValueError("its strategy is not what it says")


def _trial(parcel: Parcel) -> None:
    evidence = Evidence.model_validate(parcel.body)
    if evidence.at:
        datetime.fromisoformat(evidence.at)


def _outcome(parcel: Parcel) -> None:
    Outcome.model_validate(parcel.body["outcome"])
    if not all(isinstance(name, str) for name in (*parcel.body["changed"], *parcel.body.get("ignored", ()))):
        raise ValueError("it names strategies by what is no id")


def _reason(parcel: Parcel) -> None:
    if not str(parcel.body["reason"]).strip():
        raise ValueError("it gives no reason")


def _undone(parcel: Parcel) -> None:
    _reason(parcel)
    if not str(parcel.body["change"]).startswith(BY_HAND):
        raise ValueError("it undoes what is not shared")


def _anything(parcel: Parcel) -> None:
    """Its key and subject say it all."""


_CHECKS: dict[EventKind, Callable[[Parcel], None]] = {
    EventKind.STRATEGY: _strategy,
    EventKind.TRIAL: _trial,
    EventKind.IGNORED: _anything,
    EventKind.OUTCOME: _outcome,
    EventKind.RUN: _anything,
    EventKind.RETIRE: _reason,
    EventKind.REVERT: _undone,
}
"""What a fold over the event needs, by kind."""
