"""What one pool has to work with: its zygotes, what it keeps from candidate to candidate, the walls of its sandboxes, and the device."""

from __future__ import annotations

import copy
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self, TypeAlias

import tools
from tools.cores import usable_cores
from tools.errors import MachineError
from tools.evaluation.processes.allowance import Allowance
from tools.evaluation.processes.child import Child
from tools.evaluation.processes.kept import kept_processes, spare_processes
from tools.evaluation.processes.oracle_client import OracleClient
from tools.evaluation.processes.shared_memory_pool import SharedMemoryPool, nothing, room
from tools.evaluation.processes.spare_runners import SpareRunners
from tools.evaluation.processes.walls import Walls
from tools.evaluation.processes.zygote_ancestry import ANCESTRY, clean_environment
from tools.evaluation.processes.zygote_client import ZygoteClient
from tools.evaluation.sandbox import control_group
from tools.evaluation.sandbox.isolation import Isolation
from tools.evaluation.wire.defences import NONE, Defence, Defences
from tools.evaluation.wire.jobs.baseline import COMPILER
from tools.evaluation.wire.jobs.oracle_server import JOBS
from tools.evaluation.wire.jobs.runner import WARM
from tools.profiling.nvml import device_bytes, device_title, device_uuid
from tools.records import Problem, content_hash
from tools.scratch import remove_scratch, scratch_folder, sweep

_MAX_ANSWER = 128 << 20
_HANDLE_S = 10.0
_PHASES = "phases-"
_MORE_ORACLES = min(2, usable_cores() // 8)
"""Oracle servers beyond the first of each problem: eight candidates that are checked side by side ask for 0.4 s of one each."""
_RESTING = 2
"""Runners that wait on while one problem needs the device: what checks a candidate and what times it."""
COMPILING = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""So that Inductor asks NVML whether there is a device, at its import, and starts no processes of its own."""

Holding: TypeAlias = Callable[[Child], AbstractContextManager[None]]
"""Who is to know of a process while it works, e.g. to let it rest."""


@dataclass(frozen=True)
class Finished:
    """A phase that exchanged no messages, only left an answer."""

    answer: bytes
    log: str
    ending: str
    given: tuple[int, ...] = ()
    """Descriptors that came with it; whoever asked closes them."""


class WorkerPool:
    """Owns the processes of a pool; every method may be called from several threads."""

    def __init__(self, scratch: Path, device: int | None, *, wary: bool = False) -> None:
        """Work in `scratch`, on NVIDIA device `device` or without a GPU.

        A `wary` one judges a stranger's problem: what runs the reference gets walls of its own as well.
        """
        self.device = device
        self.wary = wary
        self.title = "" if device is None else device_title(device) or ""
        """What the driver calls the device."""
        self.off: Defences = NONE
        """Defences that a test has switched off."""
        control_group.sweep()
        sweep()
        scratch.mkdir(parents=True, exist_ok=True)
        sweep(_PHASES, scratch)
        # a sandboxed process is told its folder after it has left this one
        self._phases = scratch_folder(_PHASES, scratch.absolute())
        self._phases.chmod(0o711)
        self.trusted_cache = self._phases / "trusted-cache"
        """What trusted processes compile; no sandbox shows it."""
        self.trusted_cache.mkdir(mode=0o700)
        native, interpreter = _environments(device)
        self.native = ZygoteClient("native", native, self._phases)
        self.interpreter = ZygoteClient("interpreter", interpreter, self._phases)
        self._baselines = ZygoteClient("baselines", native | COMPILING, self._phases, "baselines")
        self._walls = Walls(self.native, device)
        self.learnt: dict[str, str] = {}
        """What was tried once on this machine, and how it went."""
        self._starting = threading.Lock()
        self._started: set[str] = set()
        self.keeps = device is not None
        """Whether the oracle server does what it can do; without a GPU it saves nothing."""
        memory = None if device is None else device_bytes(device)
        self.kept, self.spares = kept_processes(memory), spare_processes(memory)
        """Oracle servers and baselines that are kept, of each, and runners that wait."""
        self._oracle = OracleClient(self.kept, _MORE_ORACLES)
        # a stranger's reference may go on looking at memory that it was given once
        self.memory = SharedMemoryPool(nothing if wary else room)
        self.exchanges = SharedMemoryPool(nothing if wary else room, wider=1)
        """What runners shared that are dead now; of its size a runner learns nothing."""
        self._clearing = ThreadPoolExecutor(1, thread_name_prefix="clearing")
        self.spare_runners = SpareRunners(partial(self.untrusted, self.native, "runner", WARM, {}, gpu=True, cancel=-1))

    def weakened(self, off: Defences) -> Self:
        """Give the same pool, the same processes, with defences switched off: for tests of the defences alone."""
        twin = copy.copy(self)
        twin.off = off
        return twin

    def start(self, *, judges: bool = True) -> None:
        """Start the zygotes that are needed, side by side, and find out which walls this machine allows.

        Only where it `judges` a candidate without a GPU is the interpreter's among them. On a GPU it waits for walls only then.
        """
        needed = [self.native] if self.device is not None or not judges else [self.native, self.interpreter]
        with self._starting:
            missing = [zygote for zygote in needed if zygote.flavour not in self._started]
            if not missing:
                return
            with ThreadPoolExecutor(len(missing)) as threads:
                list(threads.map(ZygoteClient.start, missing))
            for gpu in (False,) if self.device is None else (False, True):
                if judges or self.device is None:
                    self.isolation(gpu=gpu)
                else:
                    threading.Thread(target=self._find_walls, kwargs={"gpu": gpu}, name="walls", daemon=True).start()
            self._started |= {zygote.flavour for zygote in missing}

    def _find_walls(self, *, gpu: bool) -> None:
        # whoever needs them is told what is missing
        with suppress(MachineError, OSError):
            self.isolation(gpu=gpu)

    def isolation(self, *, gpu: bool) -> Isolation:
        """Find the strongest walls that work here, by trying them once."""
        return self._walls.strongest(gpu=gpu)

    @contextmanager
    def trusted(self, name: str, job: bytes, shared: Mapping[str, int], cancel: int) -> Iterator[Child]:
        """Fork a phase that runs the reference and never meets a candidate; in a wary pool inside the walls."""
        if self.wary:
            own = (str(Path(tools.__file__).resolve().parent),)
            gpu = self.device is not None
            with self.untrusted(self.native, name, job, shared, gpu=gpu, cancel=cancel, readable=own) as child:
                yield child
        else:
            with self._parent(name).phase(name, job, shared, None, cancel) as child:
                yield child

    def _parent(self, name: str) -> ZygoteClient:
        """Choose what a trusted phase is forked from: baselines from what has imported the compiler, where forks of that can use CUDA."""
        if name != "baseline":
            return self.native
        self._baselines.start()
        return self._baselines if COMPILER in self._baselines.versions else self.native

    @contextmanager
    def untrusted(
        self,
        zygote: ZygoteClient,
        name: str,
        job: bytes,
        shared: Mapping[str, int],
        *,
        gpu: bool,
        cancel: int,
        readable: tuple[str, ...] = (),
        loopback: bool = False,
    ) -> Iterator[Child]:
        """Fork a phase that meets candidate code, inside the walls, under a user id of its own; it may also read `readable`.

        With `loopback` it may talk to itself by internet sockets; only where it has a network namespace of its own.
        """
        isolation = self.isolation(gpu=gpu)
        if loopback:
            isolation = isolation.model_copy(update={"loopback": isolation.namespaces})
        with (
            self._walls.box(isolation, zygote, readable, self.off, gpu=gpu) as box,
            zygote.phase(name, job, shared, box, cancel) as child,
        ):
            if Defence.LOG_LIMIT in self.off:
                child.log.limit = sys.maxsize
            yield child

    @contextmanager
    def runner(self, *, gpu: bool, cancel: int) -> Iterator[Child]:
        """Give a runner that waits for its job: a spare one where there is one, of which only folders are left when this has ended."""
        spare = self.spare_runners.take() if gpu and not self.off else None
        if spare is None:
            zygote = self.native if gpu else self.interpreter
            with self.untrusted(zygote, "runner", b"", {}, gpu=gpu, cancel=cancel) as child:
                yield child
            return
        try:
            spare.child.watch(cancel)
            yield spare.child
        finally:
            try:
                spare.child.end()
            finally:
                self._clear(spare.stack)

    def _clear(self, left: ExitStack) -> None:
        """Have what a dead process left cleared away, where nobody waits for it."""
        try:
            self._clearing.submit(left.close)
        except RuntimeError:
            # the pool has been closed
            left.close()

    def ask(
        self,
        name: str,
        job: bytes,
        shared: Mapping[str, int],
        limit: float | Allowance,
        cancel: int,
        *,
        sandboxed: bool = False,
        problem: Problem | None = None,
        stored: bool = True,
        holding: Holding | None = None,
    ) -> Finished:
        """Run a phase to its end and read its answer; an answer that is not there is empty.

        `limit` is a moment of the clock, or an allowance of the phase's own time. Given the `problem`, what the oracle server can do on
        a device is done by it, up to a moment of the clock; by any of them, where the job needs nothing `stored` on the device. A trusted
        process of its own works while `holding` holds it.
        """
        answer = os.memfd_create("answer", os.MFD_CLOEXEC)
        try:
            given = {**shared, "answer": answer}
            if sandboxed:
                with self.untrusted(self.native, name, job, given, gpu=False, cancel=cancel) as child:
                    _wait(child, limit)
            elif problem is not None and self.keeps and name in JOBS:
                assert not isinstance(limit, Allowance), "an oracle server's time is shared by many"
                fork = partial(self.trusted, "oracle_server", b"", {}, cancel)
                done = self._oracle.ask(fork, _kept_as(problem), name, job, given, limit, cancel, is_first=stored)
                return Finished(_answer(answer), *done)
            else:
                with self.trusted(name, job, given, cancel) as child, _held(child, holding):
                    _wait(child, limit)
            return Finished(_answer(answer), child.log.text, child.ending)
        finally:
            os.close(answer)

    def keeping(self, problem: Problem) -> AbstractContextManager[object]:
        """Make a context in which the oracle server of `problem` does not make room for others."""
        return self._oracle.using(_kept_as(problem))

    def rest(self) -> None:
        """End the oracle servers of problems that nobody works on, and most waiting runners: what they hold of the device is free then."""
        self._oracle.end_resting()
        self.spare_runners.trim(_RESTING)

    def close(self) -> None:
        """End every process and remove the phases' folder."""
        self._oracle.close()
        self.spare_runners.close()
        self._clearing.shutdown()
        for zygote in (self.native, self.interpreter, self._baselines):
            zygote.close()
        self.memory.close()
        self.exchanges.close()
        remove_scratch(self._phases)


def _environments(device: int | None) -> tuple[dict[str, str], dict[str, str]]:
    """What the native zygote and the interpreter's see."""
    # by its UUID: where a sandbox has the node of one device alone, CUDA counts it as the first
    name = "" if device is None else device_uuid(device) or str(device)
    visible = {"CUDA_VISIBLE_DEVICES": name, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return visible, visible | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}


def warm_ahead(device: int | None) -> None:
    """Begin to warm up the parents of a pool's zygotes, in threads, before there is a pool: it then forks its own in milliseconds."""
    native, interpreter = _environments(device)
    others = (interpreter, "evaluation") if device is None else (native | COMPILING, "baselines")
    for given in ((native, "evaluation"), others):
        threading.Thread(target=_warm, args=given, name="warm", daemon=True).start()


def _warm(environment: Mapping[str, str], kind: str) -> None:
    # what does not start is told by the pool
    with suppress(MachineError):
        ANCESTRY.zygote(clean_environment(environment), kind).kill()


@contextmanager
def _held(child: Child, holding: Holding | None) -> Iterator[None]:
    if holding is None:
        yield
        return
    child.await_handle(time.monotonic() + _HANDLE_S)
    with holding(child):
        yield


def _wait(child: Child, limit: float | Allowance) -> None:
    """Wait until it has ended by itself; DeadlineError where its limit comes first."""
    if isinstance(limit, Allowance):
        limit.begin(child)
        limit.wait(child.wait)
    else:
        child.wait(limit)


def _kept_as(problem: Problem) -> str:
    """Name by which the oracle server of a problem, whatever its sizes, is known."""
    return content_hash(problem.source, problem.entry)


def _answer(fd: int) -> bytes:
    """Read what a phase left as its answer, a bounded part of it."""
    return os.pread(fd, min(os.fstat(fd).st_size, _MAX_ANSWER), 0)
