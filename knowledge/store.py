"""The knowledge base: a log that is the truth, an index that is rebuilt from it, and the memory the graph asks."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from knowledge import portable
from knowledge.ageing import Moment
from knowledge.calibration import Calibration, Comparison, compare
from knowledge.changes import Change, changes, revert
from knowledge.curate import ALIKE, Curated, carry_out, duplicates, faded
from knowledge.doctor import Finding, diagnose
from knowledge.embedding import Embedder, open_embedder
from knowledge.entry import Entry
from knowledge.fold import Fold
from knowledge.homes import FolderHome, ServerHome
from knowledge.index import Hit, StrategyIndex, described, fitting
from knowledge.learn import learn
from knowledge.lessons import Case, LessonWriter, Proposal, StatisticalWriter
from knowledge.log import EventKind, EventLog
from knowledge.portable import Imported
from knowledge.recall import rank
from knowledge.records import SCHEMA, Outcome, Recalled, Situation, Strategy, StrategyState
from knowledge.replay import Experience, Worth, count_recalls, experiences, worth_of
from knowledge.seeds import SEEDS, plant, read_seeds
from knowledge.update import Update, cases_since, close_pass, last_update, propose, runs_since_update, write
from tools.errors import UserError
from tools.records import Record

CANDIDATES = 200
"""Nearest entries that are ranked by their records; the rest are too far away to matter."""


TOKENS = 2000
"""Budget of one recall; six entries of the seeds' length fit into it."""


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


class KnowledgeBase:
    """Remembers strategies in `folder`; several runs and processes may use the same one at once.

    Making one is instant and touches nothing. The log is opened, and the seeds are planted, on first use; the embedder
    and the index on the first recall or search. A `server` (`http://host:port` of `chroma run`) takes the index; the
    log stays in the folder.
    """

    def __init__(
        self,
        folder: Path | str,
        embedder: Embedder | None = None,
        server: str | None = None,
        seeds: Path | None = SEEDS,
        *,
        tokens: int = TOKENS,
        update_every: int = 5,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Name the store; `seeds=None` starts it empty.

        `tokens` is about how much of a prompt one recall may fill (0: no limit); lessons are rewritten after
        `update_every` runs (0: never by itself); `clock` says how old evidence is.
        """
        self.folder = Path(folder).expanduser()
        self.name = f"knowledge base {self.folder}"
        self._embedder = embedder or open_embedder()
        self._log = EventLog(self.folder / "log.sqlite3")
        self._home = ServerHome(server) if server else FolderHome(self.folder / "index")
        self._index = StrategyIndex(self._home, self._embedder, self._log)
        self._fold = Fold()
        self._seeds = seeds
        self._tokens = tokens
        self._update_every = update_every
        self._clock = clock
        self._planted = False
        # one thread at a time: the log and the index have one connection each
        self._lock = threading.RLock()

    @property
    def notes(self) -> tuple[str, ...]:
        """What fell back or had to be rebuilt so far, one sentence each."""
        return tuple(self._index.notes)

    async def recall(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Return at most `limit` strategies for `situation`, advice first, then warnings; log what was recalled, and about what."""
        return await asyncio.to_thread(self.recall_now, situation, limit, about)

    async def learn(self, outcome: Outcome) -> tuple[str, ...]:
        """Credit what was cited and keep what is new; return the ids of strategies made or changed.

        Repeating an outcome changes nothing and returns the same ids.
        """
        return await asyncio.to_thread(self.learn_now, outcome)

    def recall_now(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Recall, in this thread."""
        if limit <= 0:
            return ()
        with self._lock:
            self._follow()
            moment = Moment(self._clock(), self._fold.present)
            recalled = rank(self._fold.entries, self._near(situation, limit), situation, limit, moment, self._tokens)
            shown = [{"id": r.strategy.id, "score": r.score, "warning": r.warning, "why": r.why} for r in recalled]
            body = {"situation": situation.model_dump(mode="json"), "limit": limit, "about": about, "recalled": shown}
            with self._log.writing(durable=False) as writer:
                writer.add(EventKind.RECALL, f"recall:{uuid.uuid4().hex}", "", body)
        return recalled

    def learn_now(self, outcome: Outcome) -> tuple[str, ...]:
        """Learn, in this thread."""
        with self._lock:
            self._follow()
            return learn(self._log, self._fold, outcome)

    async def finish(self, run: str, writer: LessonWriter | None = None) -> Update | None:
        """Note that a run has ended; after every `update_every` runs, work through the replay buffer. None where it is not yet time."""
        with self._lock:
            with self._log.writing() as log:
                is_new = log.add(EventKind.RUN, f"run:{run}", run, {})
            due = bool(self._update_every) and is_new and runs_since_update(self._log) >= self._update_every
        return await self.update(writer) if due else None

    async def update(self, writer: LessonWriter | None = None, *, everything: bool = False) -> Update:
        """Rewrite lessons and predicted gains by what came of them since the last pass, and merge near-duplicates.

        Without a `writer` the statistics write. `everything` looks at every outcome again. Each change is logged with its
        reason and can be reverted.
        """
        writer = writer or StatisticalWriter()
        cases, outcomes, through, calibration = await asyncio.to_thread(self._cases, everything)
        proposals, notes = await propose(cases, writer)
        return await asyncio.to_thread(self._write, cases, proposals, through, outcomes, calibration, writer.name, notes)

    def _cases(self, everything: bool) -> tuple[list[Case], int, int, Calibration | None]:
        with self._lock:
            self._follow()
            return cases_since(self._log, self._fold, 0 if everything else last_update(self._log))

    def _write(
        self,
        cases: list[Case],
        proposals: dict[str, tuple[Proposal, str]],
        through: int,
        outcomes: int,
        calibration: Calibration | None,
        by: str,
        notes: list[str],
    ) -> Update:
        with self._lock:
            rewritten = write(self._log, self._fold, cases, proposals)
            merged = tuple(one.id for one in self.merge())
            update = Update(
                by=by,
                outcomes=outcomes,
                considered=len(cases),
                rewritten=rewritten,
                merged=merged,
                calibration=calibration,
                notes=tuple(notes),
            )
            close_pass(self._log, through, update)
            return update

    def merge(self, *, dry_run: bool = False, alike: float = ALIKE) -> tuple[Curated, ...]:
        """Merge learnt near-duplicates into the oldest of each; return what was, or would be, merged."""
        with self._lock:
            self._follow()
            found = duplicates(self._fold, self._index, alike)
            return self._carry_out(found, dry_run)

    def prune(self, *, dry_run: bool = False) -> tuple[Curated, ...]:
        """Retire what has lost its weight by age; return what was, or would be, retired."""
        with self._lock:
            self._follow()
            return self._carry_out(faded(self._fold, Moment(self._clock(), self._fold.present)), dry_run)

    def _carry_out(self, found: list[Curated], dry_run: bool) -> tuple[Curated, ...]:
        if dry_run or not found:
            return tuple(found)
        done = carry_out(self._log, self._fold, found)
        return tuple(one for one in found if one.id in done)

    def changes(self, since: int = 0, name: str = "") -> tuple[Change, ...]:
        """List rewrites, merges, retirements and what was undone, oldest first; of one strategy where it is named."""
        strategy = self._entry(name).id if name else ""
        with self._lock:
            self._follow()
            return tuple(changes(self._log, self._fold, since, strategy))

    def revert(self, change: int, reason: str) -> Change:
        """Undo one change; the log keeps both."""
        with self._lock:
            self._follow()
            return revert(self._log, self._fold, change, reason)

    def experiences(self) -> tuple[Experience, ...]:
        """Read the replay buffer, oldest first."""
        with self._lock:
            return tuple(experiences(self._log))

    def worth(self, name: str) -> Worth:
        """Sum up what a strategy was worth to the plans it was shown to."""
        entry = self._entry(name)
        with self._lock:
            return worth_of(entry.id, experiences(self._log), count_recalls(self._log))

    def calibration(self) -> Comparison | None:
        """Compare predicted and measured gains before and after lessons were first rewritten; None without predictions."""
        with self._lock:
            self._follow()
            updates = [event.seq for event in self._log.read(kinds=(EventKind.UPDATE,))]
            return compare(experiences(self._log), updates)

    def diagnose(self) -> tuple[Finding, ...]:
        """Look for everything that can be wrong with a store, mending the index where it can."""
        with self._lock:
            self._log.check()
            self._follow()
            return diagnose(self._log, self._fold, self._index, self._embedder.name)

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
            return tuple(f"{event.at} {event.kind} {event.key}" for event in self._log.of(entry.id))

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

    def retire(self, name: str, reason: str) -> Strategy:
        """Recall a strategy no more; it stays in the log with the reason."""
        if not reason.strip():
            raise UserError("Retiring a strategy needs a reason.", "Say why in a few words.")
        entry = self._entry(name)
        with self._lock:
            with self._log.writing() as writer:
                writer.add(EventKind.RETIRE, f"retire:{entry.id}:{uuid.uuid4().hex}", entry.id, {"reason": reason})
            self._fold.follow(self._log)
            return self._fold.entries[entry.id].strategy

    def rebuild(self) -> int:
        """Make the index again from the log; return how many entries it holds."""
        with self._lock:
            self._follow()
            return self._index.rebuild(self._fold)

    def check(self) -> int:
        """Read the whole log and bring the index up to date; return the number of entries. A damaged log raises UserError."""
        with self._lock:
            self._log.check()
            self._follow()
            return self._index.sync(self._fold)

    def export(self, path: Path | str) -> int:
        """Write everything known as JSON lines to a new file; return the number of entries."""
        with self._lock:
            self._follow()
            return portable.export(self._fold, Path(path))

    def import_(self, path: Path | str) -> Imported:
        """Add what is new in an export; a bad line anywhere adds nothing, and what is here is never overwritten."""
        with self._lock:
            self._follow()
            return portable.import_(self._log, self._fold, Path(path))

    def seed(self) -> int:
        """Add the seeds this release ships that are new or newer; return how many. Done by itself on first use."""
        if self._seeds is None:
            return 0
        with self._lock:
            added = plant(self._log, self._fold, read_seeds(self._seeds))
            self._planted = True
            return added

    def close(self) -> None:
        """Let go of the files; using it again opens them again."""
        with self._lock:
            self._index.close()
            self._log.close()

    def _follow(self) -> None:
        if not self._planted:
            self.seed()
            self._planted = True
        self._fold.follow(self._log)

    def _near(self, situation: Situation, limit: int) -> list[Hit]:
        """Find what lies near: of the same bottleneck first, of any other where that is too little."""
        strict = fitting(self._fold, situation, bottleneck=True)
        hits = self._index.among(self._fold, described(situation), strict, CANDIDATES)
        if len(hits) >= limit or situation.bottleneck is None:
            return hits
        others = fitting(self._fold, situation, bottleneck=False) - strict
        return hits + self._index.among(self._fold, described(situation), others, CANDIDATES)

    def _entry(self, name: str) -> Entry:
        with self._lock:
            self._follow()
            found = [entry for key, entry in self._fold.entries.items() if name and key.startswith(name)]
        if not found:
            raise UserError(f"There is no strategy {name!r} in {self.folder}.", "List them with `kernelwright knowledge list`.")
        if len(found) > 1:
            raise UserError(f"{name!r} begins the ids of {len(found)} strategies.", "Give more of the id.")
        return found[0]


def _searched(entry: Entry, hit: Hit) -> Recalled:
    why = f"similarity {hit.similarity:.2f}, {entry.state}"
    return Recalled(strategy=entry.strategy, score=round(hit.similarity, 6), why=why, warning=entry.warns)


def _by_family(entries: list[Entry]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in entries:
        for family in entry.written.situation.families:
            counts[family] = counts.get(family, 0) + 1
    return dict(sorted(counts.items()))
