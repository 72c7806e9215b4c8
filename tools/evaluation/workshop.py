"""What one pool has to work with: its zygotes, the walls this machine allows, user ids, and the device."""

from __future__ import annotations

import copy
import importlib.util
import os
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import tools
from tools.errors import MachineError
from tools.evaluation import control_group, extensions, standing, weakening
from tools.evaluation.child import Child, DeadlineError
from tools.evaluation.defences import NONE, Defence, Defences
from tools.evaluation.isolation import PLAIN_UIDS, Box, Isolation, Limits, ladder
from tools.evaluation.nursery import Nursery
from tools.evaluation.probe import WORKS
from tools.evaluation.shelf import Shelf, room
from tools.evaluation.spares import WARM, Spares
from tools.profiling.nvml import device_title, device_uuid
from tools.records import Problem, content_hash

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
)
_GPU_TREES = ("/sys", "/etc/nvidia", "/etc/OpenCL", "/run/nvidia-persistenced", "/opt/nvidia", "/usr/local/nvidia")
_GPU_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", "/dev/nvidia-caps")
_PROBE_S = 60.0
_uids: set[int] = set()
"""User ids in use by this process's sandboxes, those of all its pools."""
_uids_lock = threading.Lock()
_MAX_ANSWER = 128 << 20
_INTERPRETER_MEMORY = 3 << 30
_COMPILER_MEMORY = 8 << 30
"""On a machine with a GPU nothing is interpreted, and nvcc and g++ read torch's headers side by side: about 1.5 GB each."""
_INTERPRETER_SCRATCH = 256 << 20


@dataclass(frozen=True)
class Finished:
    """A phase that gave no conversation, only an answer."""

    answer: bytes
    log: str
    ending: str


class Workshop:
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
        scratch.mkdir(parents=True, exist_ok=True)
        # a sandboxed process is told its folder after it has left this one
        self._phases = scratch.absolute() / f"phases-{os.getpid()}-{id(self):x}"
        self._phases.mkdir(mode=0o711)
        self.trusted_cache = self._phases / "trusted-cache"
        """What trusted processes compile; no sandbox shows it."""
        self.trusted_cache.mkdir(mode=0o700)
        # by its UUID: where a sandbox has the node of one device alone, CUDA counts it as the first
        name = "" if device is None else device_uuid(device) or str(device)
        visible = {"CUDA_VISIBLE_DEVICES": name, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        self.native = Nursery("native", visible, self._phases)
        self.interpreter = Nursery("interpreter", visible | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}, self._phases)
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._started = False
        self._isolations: dict[bool, Isolation] = {}
        self._oracle = standing.StandingOracle()
        # a stranger's reference may go on looking at memory that it was given once
        self.shelf = Shelf(0 if wary else room())
        self.spares = Spares(partial(self.untrusted, self.native, "runner", WARM, {}, gpu=True, cancel=-1))

    def weakened(self, off: Defences) -> Self:
        """Give the same workshop, the same processes, with defences switched off: for tests of the defences alone."""
        twin = copy.copy(self)
        twin.off = off
        return twin

    def start(self) -> None:
        """Start the zygotes this machine needs, side by side, and find out which walls it allows."""
        with self._starting:
            if self._started:
                return
            needed = (self.native,) if self.device is not None else (self.native, self.interpreter)
            with ThreadPoolExecutor(len(needed)) as threads:
                list(threads.map(Nursery.start, needed))
            self.isolation(gpu=False)
            if self.device is not None:
                self.isolation(gpu=True)
            self._started = True

    def isolation(self, *, gpu: bool) -> Isolation:
        """Find the strongest walls that work here, by trying them."""
        with self._lock:
            known = self._isolations.get(gpu)
        if known is not None:
            return known
        reasons = []
        for step in ladder(os.geteuid() == 0, gpu):
            try:
                self._try(step, gpu=gpu)
            except (MachineError, DeadlineError) as error:
                reasons.append(f"{step.sentence}: {error}")
                continue
            group = control_group.make(self._limits(gpu=gpu))
            group.remove()
            found = step.model_copy(update={"group": bool(group.files)})
            with self._lock:
                self._isolations[gpu] = found
            return found
        raise MachineError(f"No sandbox works on this machine: {'; '.join(reasons)[-1500:]}", "Run as root, or allow user namespaces.")

    def _try(self, isolation: Isolation, *, gpu: bool) -> None:
        with self._uid() as uid:
            box = self._box(isolation, uid, self.native, gpu=gpu)
            with self.native.phase("probe", b"cuda" if gpu else b"", {}, box) as child:
                answer = child.receive(time.monotonic() + _PROBE_S)
                if answer != WORKS:
                    raise MachineError(f"the probe failed: {child.log.text.strip()[-300:]}", "")

    @contextmanager
    def trusted(self, name: str, job: bytes, shared: Mapping[str, int], cancel: int) -> Iterator[Child]:
        """Fork a phase that runs the reference and never meets a candidate; in a wary workshop inside the walls."""
        if self.wary:
            own = (str(Path(tools.__file__).resolve().parent),)
            gpu = self.device is not None
            with self.untrusted(self.native, name, job, shared, gpu=gpu, cancel=cancel, readable=own) as child:
                yield child
        else:
            with self.native.phase(name, job, shared, None, cancel) as child:
                yield child

    @contextmanager
    def untrusted(
        self,
        nursery: Nursery,
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
        with self._uid() as uid, self._group(isolation, gpu=gpu) as groups:
            box = self._box(isolation, uid, nursery, gpu=gpu)
            box = weakening.box(box.model_copy(update={"groups": groups, "readable": (*box.readable, *readable)}), self.off)
            with nursery.phase(name, job, shared, box, cancel) as child:
                if Defence.LOG_LIMIT in self.off:
                    child.log.limit = sys.maxsize
                yield child

    @contextmanager
    def runner(self, *, gpu: bool, cancel: int) -> Iterator[Child]:
        """Give a runner that waits for its job: a spare one where there is one."""
        spare = self.spares.take() if gpu and not self.off else None
        if spare is None:
            nursery = self.native if gpu else self.interpreter
            with self.untrusted(nursery, "runner", b"", {}, gpu=gpu, cancel=cancel) as child:
                yield child
            return
        with spare.stack:
            spare.child.watch(cancel)
            yield spare.child

    def ask(
        self,
        name: str,
        job: bytes,
        shared: Mapping[str, int],
        deadline: float,
        cancel: int,
        *,
        sandboxed: bool = False,
        problem: Problem | None = None,
    ) -> Finished:
        """Run a phase to its end and read its answer; an answer that is not there is empty.

        Given the `problem`, what the standing oracle can do on a device is done by it.
        """
        answer = os.memfd_create("answer", os.MFD_CLOEXEC)
        try:
            given = {**shared, "answer": answer}
            if sandboxed:
                with self.untrusted(self.native, name, job, given, gpu=False, cancel=cancel) as child:
                    child.wait(deadline)
            elif problem is not None and self.device is not None and name in standing.JOBS:
                kept = content_hash(problem.source, problem.entry)
                fork = partial(self.trusted, "standing", b"", {}, cancel)
                log, ending = self._oracle.ask(fork, kept, name, job, given, deadline, cancel)
                return Finished(_answer(answer), log, ending)
            else:
                with self.trusted(name, job, given, cancel) as child:
                    child.wait(deadline)
            return Finished(_answer(answer), child.log.text, child.ending)
        finally:
            os.close(answer)

    @contextmanager
    def _group(self, isolation: Isolation, *, gpu: bool) -> Iterator[tuple[str, ...]]:
        """Make a control group for one sandbox and remove it after; no files where the machine allows none."""
        group = control_group.make(weakening.limits(self._limits(gpu=gpu), self.off)) if isolation.group else control_group.ControlGroup(())
        try:
            yield group.files
        finally:
            group.remove()

    @contextmanager
    def _uid(self) -> Iterator[int]:
        with _uids_lock:
            # at random, since other processes' pools choose from the same ids, and limits count by id
            uid = secrets.choice([uid for uid in PLAIN_UIDS if uid not in _uids])
            _uids.add(uid)
        try:
            yield uid
        finally:
            with _uids_lock:
                _uids.discard(uid)

    def _box(self, isolation: Isolation, uid: int, nursery: Nursery, *, gpu: bool) -> Box:
        blind = {} if gpu else {"CUDA_VISIBLE_DEVICES": ""}
        return Box(
            isolation=isolation,
            limits=weakening.limits(self._limits(gpu=gpu), self.off),
            uid=uid,
            scratch="",
            readable=readable_trees(gpu=gpu),
            devices=self._nodes() if gpu else (),
            environment=nursery.environment | blind | {"OMP_NUM_THREADS": "1"},
        )

    def _limits(self, *, gpu: bool) -> Limits:
        return _limits(gpu=gpu, memory=_INTERPRETER_MEMORY if self.device is None else _COMPILER_MEMORY)

    def _nodes(self) -> tuple[str, ...]:
        import pynvml

        # NVML's order is PCI order, as the environment asks CUDA to count; nodes carry minor numbers
        nvml: Any = pynvml
        nvml.nvmlInit()
        try:
            minor = nvml.nvmlDeviceGetMinorNumber(nvml.nvmlDeviceGetHandleByIndex(self.device))
        finally:
            nvml.nvmlShutdown()
        return (*_GPU_NODES, f"/dev/nvidia{minor}")

    def close(self) -> None:
        """End every process and remove the phases' folder."""
        self._oracle.close()
        self.spares.close()
        self.native.close()
        self.interpreter.close()
        self.shelf.close()
        shutil.rmtree(self._phases, ignore_errors=True)


def _answer(fd: int) -> bytes:
    """Read what a phase left as its answer, a bounded part of it."""
    return os.pread(fd, min(os.fstat(fd).st_size, _MAX_ANSWER), 0)


def _limits(*, gpu: bool, memory: int) -> Limits:
    """What one sandbox may use of this machine's memory: CUDA reserves far more than it uses, so there only a group can bound it."""
    if gpu:
        return Limits(total_bytes=control_group.memory_bytes() * 3 // 4)
    return Limits(
        memory_bytes=memory,
        total_bytes=memory,
        file_bytes=_INTERPRETER_SCRATCH,
        scratch_bytes=_INTERPRETER_SCRATCH,
    )


def readable_trees(*, gpu: bool) -> tuple[str, ...]:
    """List the folders a private root shows: the system's, Python's, and those that hold torch and triton; outer ones first."""
    trees = {Path(tree) for tree in (*_SYSTEM, sys.prefix, sys.base_prefix)}
    for package in ("torch", "triton", "numpy"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            trees.add(Path(spec.origin).parent.parent)
    trees |= _compiler_trees()
    if gpu:
        trees |= {Path(tree) for tree in (*_GPU_TREES, *os.environ.get("LD_LIBRARY_PATH", "").split(":")) if tree}
    return tuple(str(tree) for tree in sorted(trees, key=lambda tree: len(tree.parts)) if tree.is_absolute())


def _compiler_trees() -> set[Path]:
    """Installation prefixes of the compilers: those that Triton calls to build a kernel's launcher, and CUDA's."""
    named = (os.environ.get("CC"), os.environ.get("CXX"), "gcc", "g++", "clang", "cc")
    found = (shutil.which(name) for name in named if name)
    trees = {Path(place).parent.parent for path in found if path for place in (path, Path(path).resolve())}
    home = extensions.cuda_home()
    return trees | ({Path(home), Path(home).resolve()} if home else set())
