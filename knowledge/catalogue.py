"""The catalogue of a store: what it holds, looked up and counted; nothing here changes a store."""

from __future__ import annotations

from knowledge.learning.calibration import Comparison, compare
from knowledge.learning.replay import Experience, Worth, count_recalls, experiences, worth_of
from knowledge.log.entry import Entry
from knowledge.log.event_log import EventKind
from knowledge.opened import OpenedStore
from knowledge.recall.weighing import Place, Weighed, weighed
from knowledge.records import SCHEMA, Recalled, Strategy, StrategyState
from knowledge.vectors.index import Hit
from tools.errors import UserError
from tools.records import Record


class Stats(Record):
    """What a knowledge base holds."""

    folder: str
    entries: int
    by_state: dict[str, int]
    by_family: dict[str, int]
    """An entry counts in each of its families."""
    trials: int
    events: dict[str, int]
    """By kind."""
    embedder: str
    log_bytes: int
    index_bytes: int
    """0 where the index is not made yet or is on a server."""
    schema_version: int = SCHEMA
    runs: int = 0
    """Runs that ended with this memory."""
    updates: int = 0
    """Passes over the replay buffer."""
    calibration: Comparison | None = None
    """Predicted against measured gains, before and after lessons were first rewritten; None without predictions."""


class Catalogue(OpenedStore):
    """Answers questions about strategies, their evidence, and the store as a whole."""

    def all(self) -> tuple[Strategy, ...]:
        """Every strategy as it stands, retired ones too, in the order they were written."""
        with self._lock:
            self._follow()
            return tuple(entry.strategy for entry in self._fold.entries.values())

    def get(self, name: str) -> Strategy:
        """Find a strategy by its id or a unique beginning of it."""
        return self._entry(name).strategy

    def history(self, name: str) -> tuple[str, ...]:
        """Say in one line each what happened to a strategy, oldest first."""
        entry = self._entry(name)
        with self._lock:
            events = sorted((event for name in self._names(entry) for event in self._log.of(name)), key=lambda event: event.seq)
            return tuple(f"{event.at} {event.kind} {event.key}" for event in events)

    def search(self, text: str, limit: int = 10) -> list[Strategy]:
        """Return the strategies nearest in meaning to `text`, nearest first, retired ones left out."""
        return [found.strategy for found in self.near(text, limit)]

    def near(self, text: str, limit: int = 10) -> tuple[Recalled, ...]:
        """Search, with the cosine as the score."""
        if not text.strip():
            raise UserError("There is nothing to search for.", "Give a few words.")
        with self._lock:
            self._follow()
            retired = sum(entry.retired is not None for entry in self._fold.entries.values())
            hits = self._index.anywhere(self._fold, text, limit + retired)
            found = [(self._fold.entries[hit.id], hit) for hit in hits if hit.id in self._fold.entries]
        kept = [(entry, hit) for entry, hit in found if entry.retired is None][:limit]
        return tuple(_searched(entry, hit) for entry, hit in kept)

    def experiences(self) -> tuple[Experience, ...]:
        """Read the replay buffer, oldest first."""
        with self._lock:
            return tuple(experiences(self._log))

    def weights(self, name: str) -> tuple[Weighed, ...]:
        """Say what each trial of a strategy weighs today where the strategy was written, and what has taken the rest."""
        entry = self._entry(name)
        with self._lock:
            moment = self._moment()
        return tuple(weighed(evidence, Place.of(entry.written.situation), moment) for evidence in entry.evidence)

    def worth(self, name: str) -> Worth:
        """Sum up what a strategy was worth to the plans it was shown to."""
        entry = self._entry(name)
        with self._lock:
            return worth_of(self._names(entry), experiences(self._log), count_recalls(self._log))

    def _names(self, entry: Entry) -> tuple[str, ...]:
        """The id of an entry, and those under which other machines learnt the same."""
        return (entry.id, *(name for name, here in self._fold.aliases.items() if here == entry.id))

    def calibration(self) -> Comparison | None:
        """Compare predicted and measured gains before and after lessons were first rewritten; None without predictions."""
        with self._lock:
            self._follow()
            updates = [event.seq for event in self._log.read(kinds=(EventKind.UPDATE,))]
            return compare(experiences(self._log), updates)

    def stats(self) -> dict[str, object]:
        """Count what is known, as `Stats` lists it; loads neither the embedder's model nor the index."""
        with self._lock:
            self._follow()
            entries = list(self._fold.entries.values())
            events = self._log.counts()
            calibration = self.calibration()
        index = self.folder / "index"
        stats = Stats(
            runs=events.get("run", 0),
            updates=events.get("update", 0),
            calibration=calibration,
            folder=str(self.folder),
            entries=len(entries),
            by_state={state.value: sum(entry.state is state for entry in entries) for state in StrategyState},
            by_family=_by_family(entries),
            trials=sum(len(entry.evidence) for entry in entries),
            events=events,
            embedder=self._embedder.name,
            log_bytes=sum(file.stat().st_size for file in self.folder.glob("log.sqlite3*")),
            index_bytes=sum(file.stat().st_size for file in index.rglob("*") if file.is_file()) if index.is_dir() else 0,
        )
        return stats.model_dump(mode="json")


def _searched(entry: Entry, hit: Hit) -> Recalled:
    why = f"similarity {hit.similarity:.2f}, {entry.state}"
    return Recalled(strategy=entry.strategy, score=round(hit.similarity, 6), why=why, warning=entry.warns)


def _by_family(entries: list[Entry]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in entries:
        for family in entry.written.situation.families:
            counts[family] = counts.get(family, 0) + 1
    return dict(sorted(counts.items()))
