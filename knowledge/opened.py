"""An opened store: log, fold and index of one folder behind the one lock of the process, all of them made on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from knowledge.doctor import diagnose
from knowledge.log.entry import Entry
from knowledge.log.event_log import EventLog
from knowledge.log.finding import Finding
from knowledge.log.fold import Fold
from knowledge.recall.ageing import HALF_LIFE_DAYS, Moment
from knowledge.sharing.board import check_share
from knowledge.sharing.exchange import Sharing
from knowledge.sharing.seeds import SEEDS, plant, read_seeds
from knowledge.vectors.embedding import Embedder, open_embedder
from knowledge.vectors.homes import FolderHome, ServerHome
from knowledge.vectors.index import StrategyIndex
from tools.errors import UserError

_TURN = threading.RLock()
"""Held while any store of the process is read or written: Chroma's embedded index, its SQLite and embedding models share native code."""

TOKENS = 2000
"""Budget of one recall; six entries of the seeds' length fit into it."""


class OpenedStore:
    """What the parts of a knowledge base have in common: its files, their lock, and the care for both."""

    def __init__(
        self,
        folder: Path | str,
        embedder: Embedder | None = None,
        server: str | None = None,
        seeds: Path | None = SEEDS,
        *,
        tokens: int = TOKENS,
        update_every: int = 5,
        half_life: float = HALF_LIFE_DAYS,
        share: str = "",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Name the store; `seeds=None` starts it empty.

        `tokens` is about how much of a prompt one recall may fill (0: no limit); lessons are rewritten after
        `update_every` runs (0: never by itself); evidence loses half of its weight in `half_life` days (0: it does not age);
        `clock` says how old it is. Machines that name the same `share` on one `server` learn from one another (`knowledge.sharing`).
        """
        if not half_life >= 0:
            raise UserError(f"A half-life of {half_life} days is none.", "Give a number of days, or 0: what was measured does not age.")
        check_share(share, server or "")
        self.folder = Path(folder).expanduser()
        self.name = f"knowledge base {self.folder}{f', shared as {share}' if share else ''}"
        self._embedder = embedder or open_embedder()
        self._log = EventLog(self.folder / "log.sqlite3")
        self._home = ServerHome(server) if server else FolderHome(self.folder / "index")
        self._sharing = Sharing(ServerHome(server), share, self._log) if server and share else None
        self._joined = False
        self._said: set[str] = set()
        self._index = StrategyIndex(self._home, self._embedder, self._log)
        self._fold = Fold()
        self._seeds = seeds
        self._tokens = tokens
        self._update_every = update_every
        self._half_life = half_life
        self._clock = clock
        self._planted = False
        # one thread at a time, of all stores of the process: the log and the index have one connection each
        self._lock = _TURN

    @property
    def notes(self) -> tuple[str, ...]:
        """What fell back or had to be rebuilt so far, one sentence each."""
        return (*self._index.notes, *(self._sharing.notes if self._sharing else ()))

    def news(self) -> tuple[str, ...]:
        """The notes that were not yet asked for."""
        fresh = tuple(note for note in self.notes if note not in self._said)
        self._said |= set(fresh)
        return fresh

    def seed(self) -> int:
        """Add the seeds this release ships that are new or newer; return how many. Done by itself on first use."""
        if self._seeds is None:
            return 0
        with self._lock:
            added = plant(self._log, self._fold, read_seeds(self._seeds))
            self._planted = True
            return added

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

    def diagnose(self) -> tuple[Finding, ...]:
        """Look for everything that can be wrong with a store, mending the index where it can."""
        with self._lock:
            self._log.check()
            self._follow()
            found = diagnose(self._log, self._fold, self._index, self._embedder.name)
            return (*found, self._sharing.finding(self._fold)) if self._sharing else found

    def close(self) -> None:
        """Let go of the files; using it again opens them again."""
        with self._lock:
            self._index.close()
            if self._sharing:
                self._sharing.close()
            self._log.close()

    def _follow(self) -> None:
        if not self._planted:
            self.seed()
            self._planted = True
        if not self._joined:
            self._joined = True
            self._exchange()
        self._fold.follow(self._log)

    def _exchange(self, *, insist: bool = False) -> None:
        """Share what is new here and take over what is new elsewhere, where memory is shared; a server that fails is noted."""
        if self._sharing:
            self._sharing.exchange(self._fold, insist=insist)

    def _moment(self) -> Moment:
        """What evidence is weighed by just now."""
        return Moment(self._clock(), self._fold.present, self._fold.edition, self._half_life)

    def _entry(self, name: str) -> Entry:
        with self._lock:
            self._follow()
            names = [key for key in (*self._fold.entries, *self._fold.aliases) if name and key.startswith(name)]
            found = list({entry.id: entry for key in names if (entry := self._fold.named(key))}.values())
        if not found:
            raise UserError(f"There is no strategy {name!r} in {self.folder}.", "List them with `kernelwright knowledge list`.")
        if len(found) > 1:
            raise UserError(f"{name!r} begins the ids of {len(found)} strategies.", "Give more of the id.")
        return found[0]
