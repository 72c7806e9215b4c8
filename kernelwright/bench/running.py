"""Runs a bench: several runs in flight over one evaluator, a row written as each ends, everything resumable at any moment."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from graphs.run.assembly import Shared, assemble, start_run
from graphs.run.context import Services
from kernelwright.bench.beginnings import Beginnings
from kernelwright.bench.borrowed import Borrowed
from kernelwright.bench.elsewhere import Elsewhere
from kernelwright.bench.files import BenchFolder
from kernelwright.bench.jobs import Job, all_jobs
from kernelwright.bench.loading import Loaded, Loader, ProblemLoader
from kernelwright.bench.memories import Memories
from kernelwright.bench.reading import facts_of
from kernelwright.bench.row import UNDONE, ResultRow, Status
from kernelwright.bench.settings import BenchSettings
from kernelwright.viewers.watching import see_through
from tools.errors import KernelwrightError, MachineError, UnjudgeableError, UserError
from tools.evaluation.protocol import EvaluatorPool
from tools.problems.suite import SuiteItem
from tools.records import Problem, Tier, Verdict
from tools.tracing import RunStore

Listener = Callable[[dict[str, Any]], None]

FAILURES_IN_A_ROW = 5
"""So many runs that fail one after the other are the machine's or the settings' fault: the bench stops and says so."""


PATIENCE_S = 20.0
"""A run whose file is not read, traced and timed after so long is waiting for its own slow reference: its place goes to the next one."""
MOST_SLOW = 4
"""Runs that may be slow beside those in their places, in the whole bench: where the machine has too much to do they all seem to be."""


class Bench:
    """One shard of a bench."""

    def __init__(
        self,
        settings: BenchSettings,
        items: Sequence[SuiteItem],
        folder: BenchFolder,
        pool: EvaluatorPool | None,
        *,
        in_flight: int = 2,
        loader: ProblemLoader | None = None,
        code: str = "",
        patience_s: float = PATIENCE_S,
        elsewhere: Elsewhere | None = None,
        listener: Listener = lambda event: None,
    ) -> None:
        """Plan the shard's work; `folder` is claimed already.

        `pool` is shared by all runs and closed by whoever made it; without one each run opens what its settings name.
        With `elsewhere` runs are done there.
        """
        self._settings = settings
        self._folder = folder
        self._pool = pool
        self._in_flight = in_flight
        self._code = code
        self._elsewhere = elsewhere
        self._listener = listener
        self._patience_s = patience_s
        self._beginnings = Beginnings()
        self._slow = 0
        """Runs in flight whose place has gone to another."""
        self._loader = loader or Loader()
        self._loaded: dict[str, asyncio.Task[Loaded]] = {}
        self._memories = Memories(settings.knowledge)
        self._failures: list[str] = []
        self.jobs = all_jobs(settings, items)
        done = {key for key, row in folder.rows().items() if row.status not in UNDONE}
        self.left = tuple(job for job in self.jobs if job.key not in done)
        """What is still to be done; failures of the machine, and files that could not be read, are tried again."""
        self._items = list({job.item.name: job.item for job in self.left}.values())

    async def run(self, stop_after_s: float = 0.0) -> bool:
        """Do what is left, or as much as fits into `stop_after_s`; return whether all is done.

        Runs in flight when the time is up, and when the task is cancelled, are cut where they are; the next call goes on with them.
        What could not be judged beside others is done once more by itself, after all else and while there is time.
        """
        began, work = time.monotonic(), iter(self.left)
        workers = [asyncio.create_task(self._worker(work)) for _ in range(min(self._in_flight, len(self.left)))]
        again: asyncio.Task[None] | None = None
        try:
            with _ended_by_sigterm():
                await self._watch(workers, stop_after_s)
                if all(worker.done() for worker in workers):
                    again = asyncio.create_task(self._once_more())
                    await self._watch([again], max(stop_after_s - (time.monotonic() - began), 1.0) if stop_after_s else 0.0)
        finally:
            await _cancel([*workers, *([again] if again else []), *self._loaded.values()])
            self._loader.close()
        return all(worker.done() and not worker.cancelled() for worker in workers)

    async def _watch(self, workers: list[asyncio.Task[None]], stop_after_s: float) -> None:
        if not workers:
            return
        done, _ = await asyncio.wait(workers, timeout=stop_after_s or None, return_when=asyncio.FIRST_EXCEPTION)
        for worker in done:
            worker.result()

    async def _worker(self, work: Iterator[Job]) -> None:
        """Do one job after the other; one that is slow to begin goes on beside the next."""
        slow: list[asyncio.Task[None]] = []
        try:
            for job in work:
                doing = asyncio.create_task(self._do(job))
                slow.append(doing)
                if await self._begins(job, doing) or self._slow >= MOST_SLOW:
                    await doing
                    slow.remove(doing)
                else:
                    self._slow += 1
                    doing.add_done_callback(self._slow_one_ended)
            await asyncio.gather(*slow)
        finally:
            await _cancel(slow)

    def _slow_one_ended(self, _: asyncio.Task[None]) -> None:
        self._slow -= 1

    async def _begins(self, job: Job, doing: asyncio.Task[None]) -> bool:
        """Wait until a run has begun to work, or ended; False where it is slow."""
        begun = asyncio.create_task(self._beginnings.begun(job.key))
        try:
            done, _ = await asyncio.wait([doing, begun], timeout=self._patience_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        return bool(done)

    async def _once_more(self) -> None:
        """Begin runs anew, one after the other, that met an unsteady machine while others worked beside them and delivered nothing."""
        rows = self._folder.rows()
        for job in self.left if self._in_flight > 1 and self._elsewhere is None else ():
            row = rows.get(job.key)
            # what a model answered is paid for: such a run is left as it is
            if row and row.status is Status.REFERENCE and Verdict.INFRASTRUCTURE in row.verdicts and not row.spent.tokens:
                shutil.rmtree(self._folder.home / "runs" / job.run, ignore_errors=True)
                await self._do(job, again=True)

    async def _do(self, job: Job, *, again: bool = False) -> None:
        self._listener({"event": "started", "job": job})
        row = await self._row(job)
        self._folder.append(row)
        self._listener({"event": "row", "job": job, "row": row, "again": again})
        self._count_failure(row)

    def _inside(self, job: Job, event: dict[str, Any], services: Services) -> None:
        self._beginnings.note(job.key, event["event"])
        self._listener({"event": "inside", "job": job, "inner": event, "services": services})

    async def _row(self, job: Job) -> ResultRow:
        began = time.monotonic()
        try:
            facts = await self._facts(job)
        except UnjudgeableError as error:
            facts = {"status": Status.NOT_JUDGEABLE, "reason": f"{error.what} {error.mend}"}
        except KernelwrightError as error:
            facts = {"status": Status.FAILED, "reason": f"{error.what} {error.mend}"}
        except Exception as error:
            # one run's fault must not end two hundred others; it is written down whole
            facts = {"status": Status.FAILED, "reason": self._keep_trace(job, error)}
        basis = "none"
        if facts.get("tier"):
            basis = "estimated" if facts["tier"] == Tier.ESTIMATED else "measured"
        facts = {"basis": basis, "code": self._code, **facts, "seconds": time.monotonic() - began}
        item = job.item
        about = {"bench": self._settings.id, "problem": item.name, "level": item.level, "number": item.number}
        return ResultRow.model_validate({**about, "arm": job.arm.name, "seed": job.seed, **facts})

    async def _facts(self, job: Job) -> dict[str, Any]:
        loaded = await self._load(job.item)
        if loaded.problem is None:
            status = Status.NOT_JUDGEABLE if loaded.failure == "random" else Status.UNREADABLE
            return {"status": status, "reason": loaded.reason}
        if self._elsewhere is not None:
            # it waits for a place, and is slow for no reason of its own
            self._beginnings.note(job.key, "planned")
            at = self._folder.home / "runs" / job.run
            await self._elsewhere.bring(job, loaded.problem, loaded.variants, self._run_settings(job), at)
        store = self._open(job, loaded.problem)
        try:
            settings = self._run_settings(job)
            pool = Borrowed(self._pool) if self._pool else None
            shared = Shared(pool=pool, memory=self._memories.open(settings), variants=loaded.variants)
            services = assemble(store, shared)
            await see_through(services, lambda event: self._inside(job, event, services))
            return facts_of(services)
        finally:
            store.close()

    async def _load(self, item: SuiteItem) -> Loaded:
        """Read a problem once for all of its arms, and the next one behind it, since a recurrent network takes a minute."""
        place = self._items.index(item)
        for one in self._items[place : place + 2]:
            if one.name not in self._loaded:
                self._loaded[one.name] = asyncio.create_task(self._loader.load(one.file, self._settings.run.policy))
        return await asyncio.shield(self._loaded[item.name])

    def _open(self, job: Job, problem: Problem) -> RunStore:
        """Open the job's run where one was begun, else begin it."""
        folder = self._folder.home / "runs" / job.run
        if (folder / "run.db").is_file():
            store = RunStore(folder)
            known = store.all("problem", Problem)
            if problem.id in known:
                return store
            store.close()
            if known:
                raise UserError(
                    f"{job.item.file} has changed since its run began.", "Put it back, or begin a new bench with another --out."
                )
        # a kill came between making the folder and writing the problem down: there is nothing in it
        shutil.rmtree(folder, ignore_errors=True)
        return start_run(problem, self._run_settings(job), self._folder.home, job.run)

    def _run_settings(self, job: Job) -> Any:
        knowledge = self._folder.knowledge(job.arm.name, job.seed)
        return self._settings.of(job.arm, job.seed, job.item.file, knowledge)

    def _keep_trace(self, job: Job, error: Exception) -> str:
        folder = self._folder.folder / "failures"
        folder.mkdir(exist_ok=True)
        path = folder / f"{job.run}.txt"
        path.write_text("".join(traceback.format_exception(error)))
        return f"{type(error).__name__}: {str(error)[:300]} (whole trace in failures/{path.name})"

    def _count_failure(self, row: ResultRow) -> None:
        self._failures = [*self._failures, row.reason] if row.status is Status.FAILED else []
        if len(self._failures) >= FAILURES_IN_A_ROW:
            what = f"{len(self._failures)} runs failed one after the other, the last with: {row.reason}"
            raise MachineError(what, "Mend that and repeat the command: it goes on where it stopped.")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM, a cluster's way of asking for the machine back, like Ctrl-C."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    added = False
    with suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        added = True
    try:
        yield
    finally:
        if added:
            loop.remove_signal_handler(signal.SIGTERM)


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
