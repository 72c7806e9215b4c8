"""What is known now: the fold over the events of a log."""

from __future__ import annotations

import bisect
import contextlib
import gc
from array import array
from collections.abc import Iterator

from pydantic import ValidationError

from knowledge.log.buckets import Bucket
from knowledge.log.entry import Entry, Evidence, Rewrite, signature
from knowledge.log.event_log import Event, EventKind, EventLog
from knowledge.records import Strategy
from tools.errors import UserError

ANY = "any"
"""Stands for a typed field that an entry does not restrict."""

FOLDED = (
    EventKind.STRATEGY,
    EventKind.TRIAL,
    EventKind.IGNORED,
    EventKind.REPLACE,
    EventKind.RETIRE,
    EventKind.REWRITE,
    EventKind.REVERT,
)
"""Kinds that change what is known; recalls, whole outcomes, runs and passes are history."""

REVERTIBLE = (EventKind.REWRITE, EventKind.REPLACE, EventKind.RETIRE)
"""Kinds that a REVERT event can undo; a newer seed that replaced an older one stays."""

_OF_AN_ENTRY = {EventKind.TRIAL, EventKind.IGNORED, EventKind.RETIRE}
"""Kinds that wait where their strategy is not here yet: other machines' events come in any order."""

Typed = tuple[str, str, str]
"""Backend, family (`any` where it fits all), bottleneck (`any`)."""


class Fold:
    """Entries by id, as of the last event seen; `follow` brings it up to date."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self._reverted: set[int] = set()
        """`seq` of every event that was undone."""
        self._clear()

    def _clear(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.seen = 0
        """Highest `seq` folded in."""
        self.by_signature: dict[str, str] = {}
        """Id of the first entry with each situation and action."""
        self.by_seed: dict[str, str] = {}
        """Id of the newest entry of each seed, by the seed's name."""
        self.aliases: dict[str, str] = {}
        """Id here by the id under which another machine learnt the same action in the same situation, in other words."""
        self.names: list[str] = []
        """Ids in the order in which their entries were first written: an entry's row is its place here."""
        self.words = array("q")
        """By row, `seq` of the event that gave the entry the words it has now."""
        self.typed: dict[Typed, Bucket] = {}
        """Rows of what may be recalled, by its typed fields; an entry stands under each of its families, a request for tuning nowhere."""
        self.present: dict[str, dict[str, str]] = {}
        """Newest versions that trials on each device name."""
        self.edition = 0
        """Counts how often `present` has changed."""
        self._versioned: dict[str, str] = {}
        self._order: list[tuple[int, str]] = []
        self._texts: dict[int, str] = {}
        self._waiting: dict[str, list[Event]] = {}
        """What was shared of strategies that are not here yet, such as seeds of another release."""

    def follow(self, log: EventLog) -> None:
        """Fold in what was written since, by whatever process; where something was undone, fold all again without it."""
        with _without_collector():
            self._follow(log)

    def _follow(self, log: EventLog) -> None:
        events = log.read(after=self.seen, kinds=FOLDED)
        undone = {int(event.body["change"]) for event in events if event.kind == EventKind.REVERT} - self._reverted
        if undone:
            self._reverted |= undone
            if any(change <= self.seen for change in undone):
                self._clear()
                events = log.read(kinds=FOLDED)
        for event in events:
            try:
                self._apply(event)
            except (ValidationError, KeyError, TypeError) as error:
                mend = "Export it with the release that wrote it, or restore a copy."
                raise UserError(f"Event {event.seq} of {log.path} cannot be read: {error}.", mend) from error
            self.seen = event.seq

    def is_undone(self, change: int) -> bool:
        """Whether event `change` was reverted."""
        return change in self._reverted

    def resolve(self, strategy: str) -> Entry | None:
        """Find the entry that stands for an id today, through replacements; None for an unknown id."""
        entry = self.named(strategy)
        passed = set()
        while entry is not None and entry.successor is not None and entry.id not in passed:
            passed.add(entry.id)
            entry = self.entries.get(entry.successor)
        return entry

    def named(self, strategy: str) -> Entry | None:
        """Find the entry that was written under an id, or learnt elsewhere under it; None for an unknown id."""
        return self.entries.get(self.aliases.get(strategy, strategy))

    def since(self, seq: int) -> list[Entry]:
        """List the entries whose words are of an event after `seq`, in order."""
        start = bisect.bisect_right(self._order, (seq, "￿"))
        return [self.entries[name] for _, name in self._order[start:]]

    @property
    def head(self) -> tuple[int, str]:
        """`seq` and id of the entry whose words are newest; (0, "") where there is none."""
        return self._order[-1] if self._order else (0, "")

    def written_at(self, seq: int) -> str | None:
        """Id of the entry whose words event `seq` gave or took back, or None."""
        return self._texts.get(seq)

    def _apply(self, event: Event) -> None:
        if event.kind in {EventKind.REWRITE, EventKind.REVERT} or event.seq in self._reverted:
            self._reword(event)
            return
        if event.kind in _OF_AN_ENTRY and self.named(event.subject) is None:
            self._waiting.setdefault(event.subject, []).append(event)
            return
        match event.kind:
            case EventKind.STRATEGY:
                self._write(event)
            case EventKind.TRIAL:
                self._credit(event)
            case EventKind.IGNORED:
                if entry := self.resolve(event.subject):
                    entry.ignored += 1
            case EventKind.REPLACE:
                self._replace(event)
            case EventKind.RETIRE:
                if entry := self.named(event.subject):
                    self._retire(entry, str(event.body["reason"]))

    def _credit(self, event: Event) -> None:
        entry = self.resolve(event.subject)
        if entry is None:
            return
        evidence = Evidence.model_validate(event.body)
        evidence = evidence if evidence.at else evidence.model_copy(update={"at": event.at})
        entry.credit(evidence)
        trial = evidence.trial
        if trial.versions and evidence.at >= self._versioned.get(trial.device, ""):
            self._versioned[trial.device] = evidence.at
            if self.present.get(trial.device) != trial.versions:
                self.present[trial.device] = trial.versions
                self.edition += 1

    def _reword(self, event: Event) -> None:
        """Give an entry other words; one that is undone leaves a mark only, for the index that has seen it."""
        if event.kind not in {EventKind.REWRITE, EventKind.REVERT}:
            return
        entry = self.entries.get(event.subject)
        self._texts[event.seq] = event.subject
        if entry is None or event.seq in self._reverted:
            return
        if event.kind == EventKind.REWRITE:
            rewrite = Rewrite.model_validate(event.body)
            entry.reword(rewrite.model_copy(update={"seq": event.seq, "at": rewrite.at or event.at}))
        self._order.remove((entry.text_seq, entry.id))
        entry.text_seq = self.words[entry.row] = event.seq
        self._order.append((event.seq, entry.id))

    def _write(self, event: Event) -> None:
        strategy = Strategy.model_validate(event.body["strategy"])
        entry = self.entries.get(event.subject)
        same = self.by_signature.get(signature(strategy)) if event.body["origin"] == "learnt" else None
        if entry is None and same is not None:
            # another machine learnt what is known here: here it goes by the name it has here
            self.aliases[event.subject] = same
        else:
            self._put(event, strategy, entry)
        for waiting in self._waiting.pop(event.subject, ()):
            self._apply(waiting)

    def _put(self, event: Event, strategy: Strategy, entry: Entry | None) -> None:
        """Write a new entry, or another wording of a known one."""
        if entry is None:
            entry = Entry(
                id=event.subject, seq=event.seq, row=len(self.names), written=strategy, origin=event.body["origin"], text_seq=event.seq
            )
            self.entries[entry.id] = entry
            self.names.append(entry.id)
            self.words.append(event.seq)
            self._order.append((event.seq, entry.id))
            self._texts[event.seq] = entry.id
        else:
            entry.write(strategy)
        self.by_signature.setdefault(entry.signature, entry.id)
        if entry.retired is None and not strategy.is_request:
            for key in typed_of(strategy):
                self.typed.setdefault(key, Bucket()).add(entry.row)
        if name := event.body.get("seed"):
            entry.seed, entry.revision = name, int(event.body["revision"])
            self.by_seed[name] = entry.id

    def _retire(self, entry: Entry, reason: str) -> None:
        entry.retired = reason
        for key in typed_of(entry.written):
            if bucket := self.typed.get(key):
                bucket.discard(entry.row)

    def _replace(self, event: Event) -> None:
        old, new = self.entries.get(event.subject), self.entries.get(event.body["by"])
        if old is None or new is None or old is new:
            return
        old.successor = new.id
        self._retire(old, str(event.body["reason"]))
        for evidence in old.evidence:
            new.credit(evidence)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Keep Python's collector of cycles from walking over all entries again and again while they are read: none of them is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def typed_of(strategy: Strategy) -> list[Typed]:
    """Where a strategy stands among the typed fields."""
    situation = strategy.situation
    bottleneck = situation.bottleneck.value if situation.bottleneck else ANY
    return [(situation.backend, family, bottleneck) for family in dict.fromkeys(situation.families or (ANY,))]
