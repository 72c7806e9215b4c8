"""The walls of one pool's sandboxes: the strongest that this machine allows, and for each sandbox a user id, a control group and limits."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tools.errors import MachineError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.zygote_client import ZygoteClient
from tools.evaluation.sandbox import control_group, weakening
from tools.evaluation.sandbox.isolation import PLAIN_UIDS, Box, Isolation, Limits, ladder
from tools.evaluation.sandbox.machine_view import device_nodes, hidden_trees, readable_trees
from tools.evaluation.wire.defences import NONE, Defences
from tools.evaluation.wire.jobs.probe import WORKS

_PROBE_S = 60.0
_INTERPRETER_MEMORY = 3 << 30
_COMPILER_MEMORY = 8 << 30
"""On a machine with a GPU nothing is interpreted, and nvcc and g++ read torch's headers side by side: about 1.5 GB each."""
_INTERPRETER_SCRATCH = 256 << 20
_uids: set[int] = set()
"""User ids in use by this process's sandboxes, those of all its pools."""
_uids_lock = threading.Lock()


class Walls:
    """Finds out once what works here, then makes boxes; every method may be called from several threads."""

    def __init__(self, native: ZygoteClient, device: int | None) -> None:
        """Try walls with phases of `native`, on NVIDIA device `device` or without a GPU."""
        self._native, self._device = native, device
        self._trying = {gpu: threading.Lock() for gpu in (False, True)}
        self._found: dict[bool, Isolation] = {}

    def strongest(self, *, gpu: bool) -> Isolation:
        """Find the strongest walls that work here, by trying them once; who asks meanwhile waits."""
        with self._trying[gpu]:
            if gpu not in self._found:
                self._found[gpu] = self._tried(gpu=gpu)
            return self._found[gpu]

    def _tried(self, *, gpu: bool) -> Isolation:
        reasons = []
        for step in ladder(os.geteuid() == 0, gpu):
            try:
                self._try(step, gpu=gpu)
            except (MachineError, DeadlineError) as error:
                reasons.append(f"{step.sentence}: {error}")
                continue
            group = control_group.make(self._limits(gpu=gpu))
            group.remove()
            return step.model_copy(update={"group": bool(group.files)})
        raise MachineError(f"No sandbox works on this machine: {'; '.join(reasons)[-1500:]}", "Run as root, or allow user namespaces.")

    def _try(self, isolation: Isolation, *, gpu: bool) -> None:
        with _own_uid() as uid:
            box = self._box(isolation, uid, self._native, NONE, gpu=gpu)
            with self._native.phase("probe", b"cuda" if gpu else b"", {}, box) as child:
                answer = child.receive(time.monotonic() + _PROBE_S)
                if answer != WORKS:
                    raise MachineError(f"the probe failed: {child.log.text.strip()[-300:]}", "")

    @contextmanager
    def box(self, isolation: Isolation, zygote: ZygoteClient, readable: tuple[str, ...], off: Defences, *, gpu: bool) -> Iterator[Box]:
        """Make the box of one sandbox, with a user id and a control group of its own; it may also read `readable`."""
        with _own_uid() as uid, self._group(isolation, off, gpu=gpu) as groups:
            box = self._box(isolation, uid, zygote, off, gpu=gpu)
            yield weakening.box(box.model_copy(update={"groups": groups, "readable": (*box.readable, *readable)}), off)

    @contextmanager
    def _group(self, isolation: Isolation, off: Defences, *, gpu: bool) -> Iterator[tuple[str, ...]]:
        """Make a control group for one sandbox and remove it after; no files where the machine allows none."""
        group = control_group.make(weakening.limits(self._limits(gpu=gpu), off)) if isolation.group else control_group.ControlGroup(())
        try:
            yield group.files
        finally:
            group.remove()

    def _box(self, isolation: Isolation, uid: int, zygote: ZygoteClient, off: Defences, *, gpu: bool) -> Box:
        readable = readable_trees(gpu=gpu)
        blind = {} if gpu else {"CUDA_VISIBLE_DEVICES": ""}
        return Box(
            isolation=isolation,
            limits=weakening.limits(self._limits(gpu=gpu), off),
            uid=uid,
            scratch="",
            readable=readable,
            hidden=hidden_trees(readable),
            devices=device_nodes(self._device) if gpu and self._device is not None else (),
            environment=zygote.environment | blind | {"OMP_NUM_THREADS": "1"},
        )

    def _limits(self, *, gpu: bool) -> Limits:
        """What one sandbox may use of this machine's memory: CUDA reserves far more than it uses, so there only a group can bound it."""
        if gpu:
            return Limits(total_bytes=control_group.memory_bytes() * 3 // 4)
        memory = _INTERPRETER_MEMORY if self._device is None else _COMPILER_MEMORY
        return Limits(
            memory_bytes=memory,
            total_bytes=memory,
            file_bytes=_INTERPRETER_SCRATCH,
            scratch_bytes=_INTERPRETER_SCRATCH,
        )


@contextmanager
def _own_uid() -> Iterator[int]:
    with _uids_lock:
        # at random, since other processes' pools choose from the same ids, and limits count by id
        uid = secrets.choice([uid for uid in PLAIN_UIDS if uid not in _uids])
        _uids.add(uid)
    try:
        yield uid
    finally:
        with _uids_lock:
            _uids.discard(uid)
