"""The vector index: Chroma collections that can be rebuilt from the log at any time, and are whenever they disagree with it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from knowledge.log.buckets import union
from knowledge.log.entry import Entry
from knowledge.log.event_log import EventLog
from knowledge.log.fold import ANY, Fold
from knowledge.records import Situation, Strategy
from knowledge.vectors.embedding import Embedder
from knowledge.vectors.fetched import Vectors
from knowledge.vectors.homes import Home
from tools.errors import KernelwrightError, MachineError
from tools.records import Bottleneck, OperatorFamily, content_hash

if TYPE_CHECKING:
    from knowledge.log.buckets import Rows

BATCH = 512
"""Entries embedded and written at once; Chroma takes at most 5,461."""

FETCHED = 2000
"""Vectors read at once."""

ASKED = 256
"""Questions whose vectors are kept."""

_NOT_DAMAGE = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, MemoryError)

T = TypeVar("T")


@dataclass(frozen=True)
class Hit:
    """An entry near a text."""

    id: str
    similarity: float
    """Cosine, 1 for the same direction."""


class StrategyIndex:
    """Finds strategies by meaning, beside typed filters; the embedder's name is part of the collection's."""

    def __init__(self, home: Home, embedder: Embedder, log: EventLog) -> None:
        """Open nothing before the first use."""
        self._home = home
        self._embedder = embedder
        self._log = log
        self.notes: list[str] = []
        """What had to be rebuilt, and why; one sentence each."""
        self._vectors = Vectors()
        self._asked: OrderedDict[str, list[float]] = OrderedDict()

    def among(self, fold: Fold, text: str, rows: Rows, limit: int) -> list[Hit]:
        """Return the nearest of these entries, nearest first: exact, from memory where their vectors were fetched before."""
        if not len(rows):
            return []
        vector = self._vector(text)
        self._fetch(fold, rows)
        found = [Hit(fold.names[row], round(similarity, 6)) for row, similarity in self._vectors.nearest(vector, rows, limit)]
        return sorted(found, key=lambda hit: (-hit.similarity, hit.id))

    def anywhere(self, fold: Fold, text: str, limit: int) -> list[Hit]:
        """Return the nearest of all entries, retired ones too, nearest first: approximate, from the index's own graph."""
        vector = self._vector(text)
        wanted = min(limit, len(fold.entries))
        if wanted == 0:
            return []

        def query() -> list[Hit]:
            found = self._synced(fold).query(query_embeddings=[vector], n_results=wanted, include=["distances"])
            return [Hit(i, round(1.0 - float(d), 6)) for i, d in zip(found["ids"][0], found["distances"][0], strict=True)]

        with self._home.held():
            hits = self._guarded(fold, query)
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.id))

    def alike(self, fold: Fold, ids: Sequence[str]) -> Any:
        """Cosines of these entries with one another, as a square array."""
        import numpy as np

        numbers = [fold.entries[name].row for name in ids]
        self._fetch(fold, np.unique(numbers))
        rows = np.stack([self._vectors.vector(number) for number in numbers])
        return rows @ rows.T

    def _vector(self, text: str) -> list[float]:
        """Embed a question; a run asks about the same parent more than once."""
        if text not in self._asked:
            self._asked[text] = self._embedder.embed([text])[0]
            if len(self._asked) > ASKED:
                self._asked.popitem(last=False)
        return self._asked[text]

    def _fetch(self, fold: Fold, rows: Rows) -> None:
        """Have the vectors of these entries in memory."""
        if not len(self._missing(fold, rows)):
            return

        def fetch() -> None:
            # another process may have written other words since: what is fetched now is of the words that the fold knows now
            collection = self._synced(fold)
            missing = [fold.names[row] for row in self._missing(fold, rows).tolist()]
            for start in range(0, len(missing), FETCHED):
                found = collection.get(ids=missing[start : start + FETCHED], include=["embeddings"])
                if found["ids"]:
                    entries = [fold.entries[name] for name in found["ids"]]
                    self._vectors.put([entry.row for entry in entries], found["embeddings"], [entry.text_seq for entry in entries])
            if lost := len(self._missing(fold, rows)):
                raise LookupError(f"it has lost {lost} of {len(rows)} entries")

        with self._home.held():
            self._guarded(fold, fetch)

    def _missing(self, fold: Fold, rows: Rows) -> Rows:
        """Those of the rows whose vectors are not in memory, or are of other words."""
        import numpy as np

        return self._vectors.missing(rows, np.frombuffer(fold.words, np.int64)[rows])

    def sync(self, fold: Fold) -> int:
        """Bring the index up to date with the log; return how many entries it holds."""
        with self._home.held():
            return self._guarded(fold, lambda: int(self._synced(fold).count()))

    def rebuild(self, fold: Fold) -> int:
        """Drop the index and make it again from the log; return how many entries it holds."""
        self._vectors.clear()
        with self._home.held():
            self._home.renew(self.collection)
            return int(self._synced(fold).count())

    def close(self) -> None:
        """Let go of the index."""
        self._home.close()

    @property
    def collection(self) -> str:
        """Name of the collection: one a store and embedder, so that a server can hold many."""
        return f"kernelwright-{self._log.store_id[:12]}-{content_hash(self._embedder.name)}"

    def _guarded(self, fold: Fold, work: Callable[[], T]) -> T:
        """Do the work; where the index fails, rebuild it from the log and do it once more."""
        try:
            return work()
        except BaseException as error:
            if not _is_damage(error):
                raise
            reason = _first_line(error)
        self._home.renew(self.collection)
        try:
            result = work()
        except BaseException as error:
            if not _is_damage(error):
                raise
            what = f"The vector index cannot be made in {self._log.path.parent}: {_first_line(error)}."
            raise MachineError(what, "Free disk space, or check the Chroma installation, and repeat; the log has lost nothing.") from error
        self.notes.append(f"The vector index failed ({reason}) and was rebuilt from the log.")
        return result

    def _synced(self, fold: Fold) -> Any:
        """Open the collection, and write what the log has and it has not."""
        collection, mark = self._opened()
        fold.follow(self._log)
        if reason := self._disagreement(collection, mark, fold):
            self.notes.append(f"The vector index {reason} and was rebuilt from the log.")
            self._home.renew(self.collection)
            collection, mark = self._opened()
        if missing := fold.since(mark):
            self._write(missing)
            collection, _ = self._opened()
        return collection

    def _opened(self) -> tuple[Any, int]:
        return self._collection(self._home.client())

    def _collection(self, client: Any) -> tuple[Any, int]:
        collection = client.get_or_create_collection(
            self.collection,
            metadata={"embedder": self._embedder.name, "watermark": 0, "newest": ""},
            configuration={"hnsw": {"space": "cosine"}},
            embedding_function=None,
        )
        return collection, int((collection.metadata or {}).get("watermark", -1))

    def _disagreement(self, collection: Any, mark: int, fold: Fold) -> str | None:
        """Say how the index contradicts the log; being behind is no contradiction."""
        metadata = collection.metadata or {}
        if metadata.get("embedder") != self._embedder.name:
            return f"was made by another embedder ({metadata.get('embedder')})"
        if mark and fold.written_at(mark) != metadata.get("newest"):
            return "belongs to another history of the log"
        indexed = len(fold.entries) - len(fold.since(mark))
        if collection.count() < indexed:
            return f"has lost entries ({collection.count()} of {indexed})"
        return None

    def _write(self, entries: list[Entry]) -> None:
        with self._home.writing() as client:
            collection, _ = self._collection(client)
            for start in range(0, len(entries), BATCH):
                batch = entries[start : start + BATCH]
                vectors = self._embedder.embed([embedded_text(e.current) for e in batch])
                collection.upsert(ids=[e.id for e in batch], embeddings=vectors, metadatas=[metadata_of(e) for e in batch])
                # the mark follows the entries: a kill in between only repeats an upsert
                collection.modify(metadata={"embedder": self._embedder.name, "watermark": batch[-1].text_seq, "newest": batch[-1].id})


def embedded_text(strategy: Strategy) -> str:
    """What stands for a strategy in the index: title, situation in words, lesson."""
    return f"{strategy.title}. {described(strategy.situation)} {strategy.lesson}"


def described(situation: Situation) -> str:
    """Words for a situation: its summary, or else its typed fields."""
    if situation.summary:
        return situation.summary
    families = ", ".join(situation.families) or "operator"
    limit = f" limited by {situation.bottleneck}" if situation.bottleneck else ""
    operators = f": {' '.join(situation.operators)}" if situation.operators else ""
    return f"{families}{limit}{operators}."


def metadata_of(entry: Entry) -> dict[str, str | bool]:
    """Typed fields of an entry, for whoever looks into the collection with other tools."""
    situation = entry.written.situation
    families: dict[str, str | bool] = {f"family_{family}": True for family in situation.families or (ANY,)}
    return families | {"backend": situation.backend, "bottleneck": situation.bottleneck or ANY, "generation": situation.generation or ANY}


def fitting(fold: Fold, situation: Situation, *, bottleneck: bool) -> Rows:
    """Rows of what may apply to a situation, by typed fields: its backend and its families.

    With `bottleneck`, also what fits any family, and only what is for the situation's bottleneck or for any; without, its
    families alone, whatever the bottleneck: advice that fits neither the family nor the bottleneck is no advice.
    """
    families = {*situation.families, ANY} if bottleneck else set(situation.families)
    limits = {situation.bottleneck.value, ANY} if bottleneck and situation.bottleneck else {*Bottleneck, ANY}
    if not situation.families:
        families = {*OperatorFamily, ANY}
    keys = ((situation.backend, family, limit) for family in families for limit in limits)
    return union([fold.typed[key] for key in keys if key in fold.typed])


def _is_damage(error: BaseException) -> bool:
    """Whether an error may be of the index itself; Chroma's core panics with a BaseException of its own on a damaged file."""
    import httpx  # comes with chromadb

    # an error of ours is explained already, and a broken connection is its home's to explain
    return not isinstance(error, (*_NOT_DAMAGE, KernelwrightError, httpx.HTTPError, ConnectionError))


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:160]}"
