"""Whole runs as tasks on a Ray cluster, agents and all: each is done on some node, and its folder is brought here when it has ended.

Ray repeats the task of a node that is lost; evaluations that were answered before are answered again by the dispatcher, from its file.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path
from typing import Any

from graphs.run.settings import RunSettings
from kernelwright.bench.jobs import Job
from kernelwright.bench.memories import LOG
from kernelwright.bench.settings import BenchSettings
from tools.cluster import address_of, join
from tools.cluster.dispatching import ANSWERS, DispatchedPool, Wanted, open_dispatcher
from tools.errors import MachineError, UnjudgeableError, UserError
from tools.hardware import load_sheet
from tools.records import Problem, content_hash
from tools.scratch import PREFIX, scratch

_KINDS = {"user": UserError, "machine": MachineError, "unjudgeable": UnjudgeableError}


class Elsewhere:
    """Has runs done on the cluster's nodes."""

    def __init__(self, settings: BenchSettings, pool: DispatchedPool) -> None:
        """Runs are judged by `pool`, wherever they are done; UserError where these settings must stay here."""
        check_elsewhere(settings)
        self._bench = settings.id
        self._start = (Path(settings.knowledge) / LOG).read_bytes() if settings.knowledge else b""
        self._pool = pool
        self._task = _task()

    async def bring(self, job: Job, problem: Problem, variants: tuple[Problem, ...], settings: RunSettings, folder: Path) -> None:
        """Have a run done and put its folder at `folder`; nothing to do where that is there, from before a kill."""
        import ray

        if (folder / "run.db").is_file():
            return
        share = f"bench-{content_hash(self._bench, job.arm.name, str(job.seed))[:16]}" if settings.learns and settings.memory else ""
        given = settings.model_copy(update={"share": share}).model_dump_json()
        texts = (problem.model_dump_json(), tuple(one.model_dump_json() for one in variants), given, job.run)
        ref = self._task.remote(*texts, self._start, self._pool.handle)
        try:
            packed, failure = await ref
        except BaseException:
            ray.cancel(ref)
            raise
        if failure is not None:
            kind, what, mend = failure
            raise _KINDS[kind](what, mend)
        _unpack(packed, folder)


def open_elsewhere(settings: BenchSettings, answers: Path) -> tuple[Elsewhere, DispatchedPool]:
    """Start the dispatcher, which keeps its answers in a file below `answers`; whoever asks for it closes the pool."""
    check_elsewhere(settings)
    run = settings.run
    joined = join(address_of(run.evaluator) or "")
    wanted = Wanted(
        address=joined.address,
        devices=run.devices,
        title=load_sheet(run.target).title,
        max_autotune=settings.max_autotune,
        compile_s=run.compile_timeout_s,
    )
    pool = open_dispatcher(wanted, answers / ANSWERS)
    return Elsewhere(settings, pool), pool


def check_elsewhere(settings: BenchSettings) -> None:
    """Raise UserError for what must not, or cannot, leave this machine."""
    if address_of(settings.run.evaluator) is None:
        raise UserError("Runs can be done elsewhere on a Ray cluster only.", "Add --evaluator ray[:ADDRESS], or leave --runs-on out.")
    for word, team in settings.agents.items():
        if team.models():
            what = f"The agents {word} ask a language model: its key stays on this machine, and so does the cache of its answers."
            raise UserError(what, "Leave --runs-on out: agents then work here, and evaluations on the cluster.")
    if "learning" in settings.memories and not settings.run.chroma_server:
        what = "Runs on several nodes can only share what they learn by a Chroma server."
        raise UserError(what, "Name one that every node reaches: --chroma-server http://HOST:PORT.")


def _task() -> Any:
    import ray

    def kernelwright_run(
        problem: str, variants: tuple[str, ...], settings: str, run: str, start: bytes, dispatcher: Any
    ) -> tuple[bytes, tuple[str, str, str] | None]:
        import kernelwright  # noqa: F401 - it makes the other folders importable
        from kernelwright.bench.elsewhere import do_run

        return do_run(problem, variants, settings, run, start, dispatcher)

    # agents wait for evaluations: processors are for those, or runs would take the places of what they wait for
    return ray.remote(num_cpus=0, max_retries=-1, scheduling_strategy="SPREAD")(kernelwright_run)


def do_run(
    problem: str, variants: tuple[str, ...], settings: str, run: str, start: bytes, dispatcher: Any
) -> tuple[bytes, tuple[str, str, str] | None]:
    """Do one run in a folder of this node's, and pack it; or say what stands in its way."""
    import asyncio

    from graphs.optimize.execute import execute
    from graphs.run.assembly import Shared, assemble, start_run
    from kernelwright.bench.borrowed import Borrowed
    from tools.errors import KernelwrightError

    with scratch(f"{PREFIX}run-") as home:
        own = RunSettings.model_validate_json(settings)
        knowledge = home / "knowledge"
        if start and own.memory:
            knowledge.mkdir()
            (knowledge / LOG).write_bytes(start)
        try:
            own = own.model_copy(update={"knowledge": str(knowledge)})
            store = start_run(Problem.model_validate_json(problem), own, home, run)
            try:
                known = tuple(Problem.model_validate_json(one) for one in variants)
                asyncio.run(execute(assemble(store, Shared(pool=Borrowed(DispatchedPool(dispatcher)), variants=known)), lambda event: None))
            finally:
                store.close()
        except KernelwrightError as error:
            kind = next(name for name in ("unjudgeable", "user", "machine") if isinstance(error, _KINDS[name]))
            return b"", (kind, error.what, error.mend)
        return _packed(home / "runs" / run), None


def _packed(folder: Path) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
        archive.add(folder, ".")
    return file.getvalue()


def _unpack(packed: bytes, folder: Path) -> None:
    """Put a run's folder in its place when all is in it."""
    making = folder.with_name(f".{folder.name}.coming")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(making, filter="data")
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)
