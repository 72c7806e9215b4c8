"""The agents' side of a spool: an evaluator pool whose evaluations happen wherever a worker takes them."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from tools.errors import MachineError, Postponed, UserError
from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem
from tools.spool.claims import clear
from tools.spool.folder import Spool
from tools.spool.records import Announcement, Answer, BaselinesQuestion, Executor, Job
from tools.spool.vigil import HINT_AFTER_S, Vigil

POLL_S = 0.1
_SLOWEST_POLL_S = 2.0


class SpoolPool:
    """Asks by files in a folder and waits for the answers; a job once answered is never asked again.

    Jobs outlive the process that asked: after a kill, asking again finds the job, its claim or its answer where they are. A
    cancelled evaluation withdraws its job.
    """

    def __init__(self, folder: Path, executor: Executor = "any", *, wait: bool = True, hint_after_s: float = HINT_AFTER_S) -> None:
        """Use the spool in `folder`; `executor` says who answered the run's earlier questions, so that one run mixes no tiers.

        Without `wait`, a question that nobody has answered yet raises `Postponed` at once and its job stays. After `hint_after_s`
        seconds in which no worker stirred, the listener is told how to start one.
        """
        self._spool = Spool(folder)
        self._executor: Executor = executor
        self._wait = wait
        self._vigil = Vigil(self._spool, hint_after_s)

    @property
    def name(self) -> str:
        """The folder and who works there."""
        return f"spool {self._spool.folder} ({self._vigil.describe_workers()})"

    @property
    def listener(self) -> Callable[[str], None]:
        """Who gets a line whenever a job's state changes."""
        return self._vigil.listener

    @listener.setter
    def listener(self, listener: Callable[[str], None]) -> None:
        self._vigil.listener = listener

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Have a worker judge one candidate."""
        answer = await self._ask(request)
        assert answer.evaluation is not None
        notes = (*answer.evaluation.notes, answer.origin)
        return answer.evaluation.model_copy(update={"candidate": request.candidate, "notes": notes, "place": answer.place})

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Have a worker time the reference; whoever answers, only its like is asked from then on."""
        answer = await self._ask(BaselinesQuestion(problem=problem, target=target))
        assert answer.baselines is not None
        self._executor = answer.announced.executor
        there = {"place": answer.place, "versions": answer.announced.versions}
        return answer.baselines.model_copy(update={"notes": (*answer.baselines.notes, answer.origin), **there})

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Say that workers of a spool do not read counters: their evaluations come back, and nothing else of theirs."""
        return Counters(note="Hardware counters are read by the local evaluator only: workers of a spool do not read them.")

    async def close(self) -> None:
        """Nothing of this pool runs here; jobs of evaluations that were not cancelled stay."""

    async def _ask(self, question: EvaluationRequest | BaselinesQuestion) -> Answer:
        executor = self._executor_for(question.target)
        known, attempt = self._known(question, executor)
        if known is not None:
            self._tidy(known.job)
            return known
        job = self._job(question, executor, attempt)
        mine = self._spool.put_job(job)
        try:
            return await self._answer(job)
        except asyncio.CancelledError:
            # what another run asked for stays
            if mine and self._wait:
                self._spool.withdraw(job)
            raise
        finally:
            self._vigil.forget(job.id)

    def _executor_for(self, target: HardwareSheet) -> Executor:
        """Ask for a measurement where a GPU worker for this target has ever announced itself."""
        if self._executor == "any" and any(_measures(one, target) for one in self._spool.announcements()):
            return "gpu"
        return self._executor

    def _known(self, question: EvaluationRequest | BaselinesQuestion, executor: Executor) -> tuple[Answer | None, int]:
        """An answer that is there already, and the number of the next attempt: an answered failure is asked again."""
        attempt = 1
        for asked in dict.fromkeys((executor, "any", "gpu", "interpreter")):
            number = 1
            while (answer := self._read(self._job(question, asked, number))) is not None:
                if answer.failure is None and executor in {"any", answer.announced.executor}:
                    return answer, number
                number += 1
                if answer.failure is None:
                    break
            if asked == executor:
                attempt = number
        return None, attempt

    def _job(self, question: EvaluationRequest | BaselinesQuestion, executor: Executor, attempt: int) -> Job:
        return Job(
            token=secrets.token_hex(8),
            asked=time.time(),
            asker=socket.gethostname(),
            executor=executor,
            attempt=attempt,
            evaluation=question if isinstance(question, EvaluationRequest) else None,
            baselines=question if isinstance(question, BaselinesQuestion) else None,
        )

    def _read(self, job: Job) -> Answer | None:
        """Read an answer; one that is damaged is as good as none."""
        try:
            return self._vigil.known(job)
        except ValueError:
            return None

    async def _answer(self, job: Job) -> Answer:
        """Wait for the answer, asking again should the job get lost."""
        pause, lost = POLL_S, 0
        while True:
            # looked at first: a worker answers before it takes the job away
            asked = self._spool.has_job(job.id)
            answer = self._vigil.answer(job)
            if answer is not None:
                return self._open(job, answer)
            if not self._wait:
                folder, why = self._spool.folder, self._spool.why_left(job.id)
                mend = f"Run `kernelwright worker --spool {folder} --drain`, then resume the run."
                raise Postponed(f"{job} waits in {folder}{f': {why}' if why else ''}.", mend)
            self._refused(job)
            lost = 0 if asked else lost + 1
            if lost > 1:
                self._spool.put_job(job)
            self._vigil.look(job)
            await asyncio.sleep(pause)
            pause = min(pause * 1.05, _SLOWEST_POLL_S)

    def _open(self, job: Job, answer: Answer) -> Answer:
        self._tidy(job.id)
        if answer.failure is not None:
            kind = UserError if answer.failure.kind == "user" else MachineError
            raise kind(f"{answer.failure.what} ({answer.announced.worker})", answer.failure.mend)
        if (answer.evaluation is None) != (job.evaluation is None):
            raise MachineError(f"The answer to {job} is to another question.", f"Remove {job.id}.json from {self._spool.folder}/answers.")
        if answer.evaluation is not None:
            answer.evaluation.demand_whole()
        return answer

    def _tidy(self, job_id: str) -> None:
        """Take an answered job away: in a copied folder nobody else removes the asker's own copy, nor claims that came back with it."""
        self._spool.drop_job(job_id)
        self._spool.forget_left(job_id)
        clear(self._spool.folder / "claims", job_id)

    def _refused(self, job: Job) -> None:
        """Ask once more where workers could not read the job: it may have been damaged on its way; then give up."""
        reason = self._spool.reason(job.id)
        if not reason:
            return
        if self._vigil.refused_before(job.id):
            raise MachineError(f"Workers cannot read {job}: {reason}", "Use the same version of kernelwright on both sides.")
        self._spool.forget_reason(job.id)
        self._spool.put_job(job)


def _measures(worker: Announcement, target: HardwareSheet) -> bool:
    return worker.executor == "gpu" and worker.target == target.name
