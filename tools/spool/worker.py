"""A worker: takes jobs from a spool, has its pool evaluate them, and puts the answers back."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tools.errors import KernelwrightError, MachineError, UserError
from tools.evaluation.protocol import EvaluatorPool
from tools.records import Verdict
from tools.spool.claims import Claims, latest
from tools.spool.folder import Spool
from tools.spool.heartbeat import LEASE_S, Heartbeat
from tools.spool.intake import SETTLE_S, Intake
from tools.spool.lookout import Lookout
from tools.spool.records import Announcement, Answer, Claim, Failure, Job

POLL_S = 0.25
_DEATHS = 3
"""Workers that may die over one job before it is answered with that."""
_FAILURES = 3
"""Failures of this machine in a row after which the worker ends, so that it does not answer every job with one."""


@dataclass
class Summary:
    """What a worker did."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    """Candidates judged, by verdict."""
    baselines: int = 0
    """References timed or estimated."""
    failures: int = 0
    """Jobs answered with a failure of this machine."""
    withdrawn: int = 0
    """Jobs whose askers no longer wanted them."""
    given_back: int = 0
    """Jobs taken and not finished."""
    set_aside: dict[str, str] = field(default_factory=dict)
    """Files that could not be used, with the reason."""
    left: dict[str, str] = field(default_factory=dict)
    """Jobs that are not for this worker, with the reason."""
    seconds: float = 0.0

    @property
    def answered(self) -> int:
        """Jobs answered."""
        return self.verdicts.total() + self.baselines + self.failures


class Worker:
    """Works on one spool with one pool."""

    def __init__(
        self,
        spool: Spool,
        pool: EvaluatorPool,
        announcement: Announcement,
        *,
        jobs: int = 1,
        lease_s: float = LEASE_S,
        settle_s: float = SETTLE_S,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Have at most `jobs` evaluations under way; `say` gets a line for everything that happens."""
        self._spool = spool
        self._pool = pool
        self._heartbeat = Heartbeat(spool, announcement, lease_s)
        self._lookout = Lookout(spool, lease_s)
        self._claims = Claims(spool, announcement.worker, self._lookout)
        self._intake = Intake(spool, announcement, settle_s)
        self._jobs = jobs
        self._say = say
        self._tasks: dict[asyncio.Task[None], Claim] = {}
        self._row = 0
        self.summary = Summary(set_aside=self._intake.set_aside, left=self._intake.left)

    async def run(self, stop: asyncio.Event, *, drain: bool = False) -> Summary:
        """Work until `stop`, or with `drain` until nothing is left to do; what is under way at the end is given back."""
        began = time.monotonic()
        stopping = asyncio.create_task(stop.wait())
        with self._heartbeat:
            try:
                while not stop.is_set():
                    idle = self._fill()
                    if drain and idle and not self._tasks:
                        break
                    await asyncio.wait({stopping, *self._tasks}, timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
                    self._collect()
                    self._end_withdrawn()
            finally:
                stopping.cancel()
                await self._give_back()
                self.summary.seconds = time.monotonic() - began
        return self.summary

    def _fill(self) -> bool:
        """Take jobs while there is room; True where there is nothing to wait for."""
        idle = True
        held = {claim.job for claim in self._tasks.values()}
        for job in self._intake.jobs(self._claims):
            if job.id in held:
                continue
            if len(self._tasks) >= self._jobs:
                return False
            claim = self._claims.take(job)
            if claim is not None:
                self._begin(job, claim)
                idle = False
            elif self._may_fall_to_us(job):
                idle = False
        while self._intake.to_say:
            self._say(self._intake.to_say.pop(0))
        return idle and not self._intake.unsettled

    def _may_fall_to_us(self, job: Job) -> bool:
        """Whether another's claim on the job could be that of a dead worker: it is known only after watching it."""
        last = latest(self._spool.folder / "claims", job.id)
        return last is None or last[1] is None or last[2] or not self._lookout.is_alive(last[1].worker)

    def _begin(self, job: Job, claim: Claim) -> None:
        again = f", taken over (taking {claim.generation})" if claim.generation > 1 else ""
        self._say(f"took {job}{again}")
        self._tasks[asyncio.create_task(self._work(job, claim))] = claim

    async def _work(self, job: Job, claim: Claim) -> None:
        outcome = await self._outcome(job, claim)
        said = self._heartbeat.announcement
        answer = Answer(job=job.id, key=job.question.key, announced=said, generation=claim.generation, finished=time.time(), **outcome)
        if not self._claims.holds(claim) or not self._spool.put_answer(answer):
            self._say(f"dropped the answer to {job}: another worker took it over")
            return
        self._spool.drop_job(job.id)
        self._claims.clear(job.id)
        self._heartbeat.count()
        self._count(job, answer)

    async def _outcome(self, job: Job, claim: Claim) -> dict[str, Any]:
        """Ask the pool; whatever escapes it is an answer too, or the worker would take the job again and again."""
        if claim.died >= _DEATHS:
            what = f"{claim.died} workers died over {job}."
            return {"failure": Failure(what=what, mend="Look at their machines' memory and kernel log; ask again to try once more.")}
        try:
            if job.evaluation is not None:
                return {"evaluation": await self._pool.evaluate(job.evaluation)}
            return {"baselines": await self._pool.baselines(job.question.problem, job.target)}
        except KernelwrightError as error:
            kind = "user" if isinstance(error, UserError) else "machine"
            return {"failure": Failure.model_validate({"kind": kind, "what": error.what, "mend": error.mend})}
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return {"failure": Failure(what=f"The evaluator failed unexpectedly: {said[:400]}.", mend="Report it with the job's file.")}

    def _count(self, job: Job, answer: Answer) -> None:
        self._row = self._row + 1 if answer.failure and answer.failure.kind == "machine" else 0
        if answer.failure:
            self.summary.failures += 1
            self._say(f"FAILED {job}: {answer.failure.what}")
        elif answer.evaluation:
            self.summary.verdicts[answer.evaluation.verdict] += 1
            tier = f", {answer.evaluation.speedup:.2f}x ({answer.evaluation.tier})" if answer.evaluation.speedup else ""
            self._say(f"{answer.evaluation.verdict} {job} in {answer.evaluation.seconds:.1f} s{tier}")
        elif answer.baselines:
            self.summary.baselines += 1
            self._say(f"answered {job}: {answer.baselines.best_us:,.1f} µs ({answer.baselines.tier})")

    def _collect(self) -> None:
        """Let go of what has ended; an answer that could not be written ends the worker."""
        for task in [task for task in self._tasks if task.done()]:
            claim = self._tasks.pop(task)
            if task.cancelled():
                self.summary.withdrawn += 1
                self._claims.clear(claim.job)
                self._say(f"ended {claim.job}: it was withdrawn")
            elif (error := task.exception()) is not None:
                self._claims.give_back(claim)
                if isinstance(error, OSError):
                    raise MachineError(f"The spool cannot be written to: {error}.", "Mend that; the job was given back.") from error
                raise error
        if self._row >= _FAILURES:
            raise MachineError(
                f"This machine failed {self._row} jobs in a row.", "Mend it (the answers say what failed), then start the worker again."
            )

    def _end_withdrawn(self) -> None:
        """Cancel what nobody wants any more."""
        for task, claim in self._tasks.items():
            if self._spool.is_withdrawn(claim.job, claim.token) and not self._spool.has_job(claim.job):
                task.cancel()

    async def _give_back(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for task, claim in self._tasks.items():
            if task.cancelled() or task.exception() is not None:
                self.summary.given_back += 1
                self._claims.give_back(claim)
                self._say(f"gave {claim.job} back")
        self._tasks.clear()
