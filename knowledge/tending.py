"""The tending of a store: lessons rewritten, near-duplicates merged, faded ones retired, and each change undone on request."""

from __future__ import annotations

import asyncio
import uuid

from knowledge.learning.calibration import Calibration
from knowledge.lessons.changes import Change, changes, revert
from knowledge.lessons.curate import ALIKE, Curated, carry_out, duplicates, faded
from knowledge.lessons.reflect import cases_of_run, earlier, note_pass
from knowledge.lessons.update import Update, cases_since, close_pass, last_update, propose, write
from knowledge.lessons.writers import Case, LessonWriter, Proposal, StatisticalWriter
from knowledge.log.event_log import EventKind, Writer
from knowledge.opened import OpenedStore
from knowledge.records import Strategy
from tools.errors import UserError


class Tending(OpenedStore):
    """Changes what is known after it was learnt; every change is an event with its reason, and can be reverted."""

    async def update(self, writer: LessonWriter | None = None, *, everything: bool = False) -> Update:
        """Rewrite lessons and predicted gains by what came of them since the last pass, and merge near-duplicates.

        Without a `writer` the statistics write. `everything` looks at every outcome again. Each change is logged with its
        reason and can be reverted.
        """
        writer = writer or StatisticalWriter()
        cases, outcomes, through, calibration = await asyncio.to_thread(self._cases, everything)
        proposals, notes = await propose(cases, writer)
        return await asyncio.to_thread(self._write, cases, proposals, through, outcomes, calibration, writer.name, notes)

    async def reflect(self, run: str, number: int, writer: LessonWriter | None = None, most: int = 4) -> Update | None:
        """Rewrite at most `most` lessons that the run's outcomes since its last such pass gainsay; repeating a pass changes nothing.

        What it saw is seen again by the pass after runs, which alone merges.
        """
        writer = writer or StatisticalWriter()
        known, cases, update, through = await asyncio.to_thread(self._run_cases, run, number, most)
        if known is not None:
            return known
        proposals, notes = await propose(cases, writer)
        update = update.model_copy(update={"by": writer.name, "notes": tuple(notes)})
        return await asyncio.to_thread(self._write_reflection, run, number, cases, proposals, update, through)

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
            return self._carry_out(faded(self._fold, self._moment()), dry_run)

    def retire(self, name: str, reason: str) -> Strategy:
        """Recall a strategy no more; it stays in the log with the reason."""
        if not reason.strip():
            raise UserError("Retiring a strategy needs a reason.", "Say why in a few words.")
        entry = self._entry(name)
        if entry.retired is not None:
            raise UserError(f"{entry.id} is retired already: {entry.retired}.", "Look at it with `kernelwright knowledge diff`.")
        with self._lock:
            with self._log.writing() as writer:
                writer.add(EventKind.RETIRE, f"retire:{entry.id}:{uuid.uuid4().hex}", entry.id, {"reason": reason})
            self._exchange()
            self._fold.follow(self._log)
            return self._fold.entries[entry.id].strategy

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
            done = revert(self._log, self._fold, change, reason)
            self._exchange()
            return done

    def _cases(self, everything: bool) -> tuple[list[Case], int, int, Calibration | None]:
        with self._lock:
            self._follow()
            return cases_since(self._log, self._fold, 0 if everything else last_update(self._log), self._moment())

    def _run_cases(self, run: str, number: int, most: int) -> tuple[Update | None, list[Case], Update, int]:
        with self._lock:
            self._follow()
            known, after = earlier(self._log, run, number)
            return known, *cases_of_run(self._log, self._fold, run, after, most, self._moment())

    def _write_reflection(
        self, run: str, number: int, cases: list[Case], proposals: dict[str, tuple[Proposal, str]], update: Update, through: int
    ) -> Update:
        def close(writer: Writer, rewritten: tuple[str, ...]) -> None:
            note_pass(writer, run, number, through, update.model_copy(update={"rewritten": rewritten}))

        with self._lock:
            return update.model_copy(update={"rewritten": write(self._log, self._fold, cases, proposals, close)})

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

    def _carry_out(self, found: list[Curated], dry_run: bool) -> tuple[Curated, ...]:
        if dry_run or not found:
            return tuple(found)
        done = carry_out(self._log, self._fold, found)
        return tuple(one for one in found if one.id in done)
