"""What is known now: the fold over the events of a log."""

from __future__ import annotations

import bisect

from pydantic import ValidationError

from knowledge.entry import Entry, Evidence
from knowledge.log import Event, EventKind, EventLog
from knowledge.records import Strategy
from tools.errors import UserError

FOLDED = (EventKind.STRATEGY, EventKind.TRIAL, EventKind.IGNORED, EventKind.REPLACE, EventKind.RETIRE)
"""Kinds that change what is known; recalls and whole outcomes are history."""


class Fold:
    """Entries by id, as of the last event seen; `follow` brings it up to date."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self.entries: dict[str, Entry] = {}
        self.seen = 0
        """Highest `seq` folded in."""
        self.by_signature: dict[str, str] = {}
        """Id of the first entry with each situation and action."""
        self.by_seed: dict[str, str] = {}
        """Id of the newest entry of each seed, by the seed's name."""
        self._order: list[tuple[int, str]] = []

    def follow(self, log: EventLog) -> None:
        """Fold in what was written since, by whatever process."""
        for event in log.read(after=self.seen, kinds=FOLDED):
            try:
                self._apply(event)
            except (ValidationError, KeyError, TypeError) as error:
                mend = "Export it with the release that wrote it, or restore a copy."
                raise UserError(f"Event {event.seq} of {log.path} cannot be read: {error}.", mend) from error
            self.seen = event.seq

    def resolve(self, strategy: str) -> Entry | None:
        """Find the entry that stands for an id today, through replacements; None for an unknown id."""
        entry = self.entries.get(strategy)
        passed = set()
        while entry is not None and entry.successor is not None and entry.id not in passed:
            passed.add(entry.id)
            entry = self.entries.get(entry.successor)
        return entry

    def since(self, seq: int) -> list[Entry]:
        """List the entries first written after event `seq`, in order."""
        start = bisect.bisect_right(self._order, (seq, "￿"))
        return [self.entries[name] for _, name in self._order[start:]]

    @property
    def head(self) -> tuple[int, str]:
        """`seq` and id of the newest entry; (0, "") where there is none."""
        return self._order[-1] if self._order else (0, "")

    def written_at(self, seq: int) -> str | None:
        """Id of the entry first written by event `seq`, or None."""
        at = bisect.bisect_left(self._order, (seq, ""))
        found = self._order[at : at + 1]
        return found[0][1] if found and found[0][0] == seq else None

    def _apply(self, event: Event) -> None:
        match event.kind:
            case EventKind.STRATEGY:
                self._write(event)
            case EventKind.TRIAL:
                if entry := self.resolve(event.subject):
                    entry.credit(Evidence.model_validate(event.body))
            case EventKind.IGNORED:
                if entry := self.resolve(event.subject):
                    entry.ignored += 1
            case EventKind.REPLACE:
                self._replace(event)
            case EventKind.RETIRE:
                if entry := self.entries.get(event.subject):
                    entry.retired = str(event.body["reason"])

    def _write(self, event: Event) -> None:
        strategy = Strategy.model_validate(event.body["strategy"])
        entry = self.entries.get(event.subject)
        if entry is None:
            entry = Entry(id=event.subject, seq=event.seq, written=strategy, origin=event.body["origin"])
            self.entries[entry.id] = entry
            self.by_signature.setdefault(entry.signature, entry.id)
            self._order.append((event.seq, entry.id))
        else:
            # the same words again, with other parameters, gain or source: the newest counts, the evidence stays
            entry.written = strategy
            self.by_signature.setdefault(entry.signature, entry.id)
        if name := event.body.get("seed"):
            entry.seed, entry.revision = name, int(event.body["revision"])
            self.by_seed[name] = entry.id

    def _replace(self, event: Event) -> None:
        old, new = self.entries.get(event.subject), self.entries.get(event.body["by"])
        if old is None or new is None or old is new:
            return
        old.successor, old.retired = new.id, str(event.body["reason"])
        for evidence in old.evidence:
            new.credit(evidence)
