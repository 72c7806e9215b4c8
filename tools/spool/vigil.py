"""What an asker sees while it waits: which jobs are queued, who took them when, and whether anybody works at all."""

from __future__ import annotations

import time
from collections.abc import Callable

from tools.errors import UserError
from tools.spool.claims import latest
from tools.spool.folder import Spool
from tools.spool.forms import OtherVersionError
from tools.spool.records import Answer, Job

SETTLE_S = 3.0
"""An answer that cannot be read and stays so for so long is no answer that is still being copied."""
HINT_AFTER_S = 30.0
REMIND_S = 300.0


class Vigil:
    """Watches one spool for one pool, and tells its listener what changes."""

    def __init__(self, spool: Spool, hint_after_s: float) -> None:
        """Watch `spool`."""
        self._hint_after_s = hint_after_s
        self.listener: Callable[[str], None] = lambda line: None
        self._spool = spool
        self._states: dict[str, str] = {}
        self._torn: dict[str, float] = {}
        self._refused: set[str] = set()
        self._left: dict[str, str] = {}
        # sessions with the beat last seen and when it was first seen by our clock; those there at the start count only when they stir
        self._beats = {one.worker.session: (one.beat, 0.0) for one in spool.announcements()}
        self._said = 0.0

    def describe_workers(self) -> str:
        """Who works here, in a few words."""
        known = [one for one in self._spool.announcements() if not one.ended]
        if not known:
            return "no worker now"
        places = dict.fromkeys(f"{one.place} on {one.worker.host}, last heard {_age(one.written)}" for one in known)
        return "; ".join(list(places)[-3:])

    def answer(self, job: Job) -> Answer | None:
        """Read the answer to a job; one that stays unreadable is set aside, and the job is open again.

        One of another version raises UserError: what it cost is kept, and whoever answers again says the same again.
        """
        try:
            answer = self.known(job)
        except ValueError as error:
            first = self._torn.setdefault(job.id, time.monotonic())
            if time.monotonic() - first > SETTLE_S:
                del self._torn[job.id]
                self._spool.set_aside("answers", f"{job.id}.json", str(error))
                self.listener(f"the answer to {job} cannot be read ({error}): asked again")
            return None
        self._torn.pop(job.id, None)
        return answer

    def known(self, job: Job) -> Answer | None:
        """Read the answer to a job; UserError for one of another version, ValueError for one that cannot be read."""
        try:
            return self._spool.answer(job.id)
        except OtherVersionError as error:
            place = f"{self._spool.folder}/answers/{job.id}.json"
            mend = "Update kernelwright here, then resume the run: the answer stays where it is."
            if not error.newer:
                self._spool.set_aside("answers", f"{job.id}.json", str(error))
                mend = "Update kernelwright where the worker runs and start it again, then resume the run."
            raise UserError(f"The answer to {job} cannot be used: {error} ({place}).", mend) from error

    def refused_before(self, job_id: str) -> bool:
        """Whether workers set this job aside a second time."""
        before = job_id in self._refused
        self._refused.add(job_id)
        return before

    def look(self, job: Job) -> None:
        """Tell the listener where the job stands, if that has changed, and remind it of a wait that lasts."""
        state = self._state(job)
        if self._states.get(job.id) != state:
            self._states[job.id] = state
            self.listener(f"{job}: {state}")
            self._said = time.monotonic()
        if state == "queued" and (why := self._spool.why_left(job.id)) and self._left.get(job.id) != why:
            self._left[job.id] = why
            self.listener(f"{job}: {why}")
        waited = time.monotonic() - self._said
        if state == "queued" and waited > self._hint_after_s and not self.anyone_stirs():
            self.listener(f"no worker is seen at {self._spool.folder}: start one with `kernelwright worker --spool {self._spool.folder}`")
            # the next reminder is of the wait itself
            self._said = time.monotonic() + REMIND_S - self._hint_after_s
        elif waited > REMIND_S:
            queued = sum(state == "queued" for state in self._states.values())
            self.listener(f"still waiting: {queued} queued, {len(self._states) - queued} taken; {self.describe_workers()}")
            self._said = time.monotonic()

    def forget(self, job_id: str) -> None:
        """The job is no longer waited for."""
        self._states.pop(job_id, None)

    def anyone_stirs(self) -> bool:
        """Whether any worker's announcement changed within the last minutes."""
        now = time.monotonic()
        for one in self._spool.announcements():
            known = self._beats.get(one.worker.session)
            if known is None or known[0] != one.beat:
                self._beats[one.worker.session] = (one.beat, now)
        return any(seen > now - REMIND_S for _, seen in self._beats.values() if seen)

    def _state(self, job: Job) -> str:
        last = latest(self._spool.folder / "claims", job.id)
        if last is None or last[1] is None or last[2]:
            return "queued"
        claim = last[1]
        said = self._spool.announcement(claim.worker.session)
        if said is not None and said.ended:
            return f"was left by {claim.worker}; waits for another"
        place = f" ({said.place})" if said else ""
        return f"taken by {claim.worker}{place} at {time.strftime('%H:%M:%S', time.localtime(claim.since))}"


def _age(written: float) -> str:
    seconds = max(0.0, time.time() - written)
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago" if seconds < 7200 else f"{seconds / 3600:.0f} h ago"
