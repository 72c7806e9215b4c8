"""The knowledge base: an opened store that recalls and learns, and is looked up (`catalogue`) and tended (`tending`)."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

from knowledge.catalogue import Catalogue, Stats
from knowledge.learning.learn import learn
from knowledge.lessons.update import Update, runs_since_update
from knowledge.lessons.writers import LessonWriter
from knowledge.log.buckets import without
from knowledge.log.event_log import EventKind
from knowledge.opened import TOKENS
from knowledge.recall.expectation import expect
from knowledge.recall.ranking import rank
from knowledge.records import Outcome, Recalled, Situation
from knowledge.sharing import portable
from knowledge.sharing.portable import Imported
from knowledge.tending import Tending
from knowledge.vectors.index import Hit, described, fitting
from tools.records import Action

__all__ = ["CANDIDATES", "TOKENS", "KnowledgeBase", "Stats"]

CANDIDATES = 200
"""Nearest entries that are ranked by their records; the rest are too far away to matter."""


class KnowledgeBase(Tending, Catalogue):
    """Remembers strategies in `folder`; several runs and processes may use the same one at once.

    Making one is instant and touches nothing. The log is opened, and the seeds are planted, on first use; the embedder
    and the index on the first recall or search. A `server` (`http://host:port` of `chroma run`) takes the index; the
    log stays in the folder. Machines that name the same `share` there learn from one another.
    """

    async def prepare(self) -> None:
        """Open the log and the index, and load the embedding model."""
        await asyncio.to_thread(self.prepare_now)

    async def recall(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Return at most `limit` strategies for `situation`, advice first, then warnings; log what was recalled, and about what."""
        return await asyncio.to_thread(self.recall_now, situation, limit, about)

    async def expect(self, situation: Situation, action: Action, plan: str = "") -> float | None:
        """Return the gain that the trials of this very action in such a situation suggest; None where it never passed there."""
        return await asyncio.to_thread(self.expect_now, situation, action, plan)

    async def learn(self, outcome: Outcome) -> tuple[str, ...]:
        """Credit what was cited and keep what is new; return the ids of strategies made or changed.

        Repeating an outcome changes nothing and returns the same ids.
        """
        return await asyncio.to_thread(self.learn_now, outcome)

    def prepare_now(self) -> None:
        """Get ready, in this thread."""
        with self._lock:
            self._follow()
            self._index.sync(self._fold)
            self._embedder.embed(["ready"])

    def recall_now(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Recall, in this thread."""
        if limit <= 0:
            return ()
        with self._lock:
            self._follow()
            recalled = rank(self._fold.entries, self._near(situation, limit), situation, limit, self._moment(), self._tokens)
            shown = [{"id": r.strategy.id, "score": r.score, "warning": r.warning, "why": r.why} for r in recalled]
            body = {"situation": situation.model_dump(mode="json"), "limit": limit, "about": about, "recalled": shown}
            with self._log.writing(durable=False) as writer:
                writer.add(EventKind.RECALL, f"recall:{uuid.uuid4().hex}", "", body)
        return recalled

    def expect_now(self, situation: Situation, action: Action, plan: str = "") -> float | None:
        """Expect, in this thread."""
        with self._lock:
            self._follow()
            return expect(self._fold, situation, action, self._moment(), plan)

    def learn_now(self, outcome: Outcome) -> tuple[str, ...]:
        """Learn, in this thread."""
        with self._lock:
            self._follow()
            changed = learn(self._log, self._fold, outcome)
            self._exchange()
            return changed

    async def finish(self, run: str, writer: LessonWriter | None = None) -> Update | None:
        """Note that a run has ended; after every `update_every` runs, work through the replay buffer. None where it is not yet time."""
        due = await asyncio.to_thread(self._note_end, run)
        return await self.update(writer) if due else None

    def export(self, path: Path | str) -> int:
        """Write everything known as JSON lines to a new file; return the number of entries."""
        with self._lock:
            self._follow()
            return portable.export(self._fold, Path(path))

    def import_(self, path: Path | str) -> Imported:
        """Add what is new in an export; a bad line anywhere adds nothing, and what is here is never overwritten."""
        with self._lock:
            self._follow()
            done = portable.import_(self._log, self._fold, Path(path))
            self._exchange()
            return done

    def _note_end(self, run: str) -> bool:
        """Note that a run has ended; return whether it is time to work through the replay buffer."""
        with self._lock:
            with self._log.writing() as log:
                is_new = log.add(EventKind.RUN, f"run:{run}", run, {})
            self._exchange(insist=True)
            return bool(self._update_every) and is_new and runs_since_update(self._log) >= self._update_every

    def _near(self, situation: Situation, limit: int) -> list[Hit]:
        """Find what lies near: of the same bottleneck first, of any other where that is too little."""
        strict = fitting(self._fold, situation, bottleneck=True)
        hits = self._index.among(self._fold, described(situation), strict, CANDIDATES)
        if len(hits) >= limit or situation.bottleneck is None:
            return hits
        others = without(fitting(self._fold, situation, bottleneck=False), strict)
        return hits + self._index.among(self._fold, described(situation), others, CANDIDATES)
