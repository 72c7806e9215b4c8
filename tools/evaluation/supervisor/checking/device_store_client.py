"""The supervisor's side of a device store, and the choice between one and shared memory for what a plan's calls need."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tools.errors import MachineError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import Finished, WorkerPool
from tools.evaluation.wire.calls import CallPlan
from tools.evaluation.wire.jobs.device_store import DeviceStoreJob, Order
from tools.evaluation.wire.jobs.probe import WORKS
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.size_classes import MIDDLE_BYTES
from tools.evaluation.wire.tensor_store import HostStore
from tools.logs import telling_part
from tools.records import HardwareSheet, Problem

ORDER_S = 120.0
"""How long the oracle server may take to copy what one call needs."""
DEVICE_SHARE = 0.2
"""A problem whose tensors take a larger share of the device's memory leaves too little of it for a float64 oracle beside the store."""
_SHARING = "device memory shared"


class DeviceStoreClient:
    """A plan's tensors in the device store of an oracle server; what a `HostStore` is for those in shared memory."""

    def __init__(self, workers: WorkerPool, problem: Problem, cancel: int) -> None:
        """Name a store; the first job that names it makes it. The oracle that has it is kept until this is closed."""
        self.abi = problem.abi
        self.store = secrets.token_hex(8)
        self._workers, self._problem, self._cancel = workers, problem, cancel
        self._stack = ExitStack()
        self._stack.enter_context(workers.keeping(problem))

    def ask(self, order: Order, **fields: object) -> Finished:
        """Have the oracle server do something with it; MachineError where it could not."""
        done = _asked(
            self._workers, DeviceStoreJob.model_validate({"store": self.store, "order": order, **fields}), self._problem, self._cancel
        )
        if not done.answer and order not in ("share", "drop"):
            reason = telling_part(done.log) or done.ending
            raise MachineError(f"The tensors could not be moved on the device: {reason}", "Check the device's memory with nvidia-smi.")
        return done

    def share(self, poison: int | None, stack: ExitStack) -> dict[str, int]:
        """Have memory made that a runner or a baseline maps, and give its descriptor by name."""
        done = self.ask("share", poison=poison)
        if not done.given:
            reason = telling_part(done.log) or done.ending
            raise MachineError(f"Device memory could not be shared: {reason}", "Check the device's memory with nvidia-smi.")
        for fd in done.given:
            stack.callback(os.close, fd)
        return {"carried": done.given[0]}

    def lent(self, stack: ExitStack) -> dict[str, int]:
        """Share parameters and the first call's inputs with a process that copies them."""
        given = self.share(None, stack)
        self.ask("give", call=0)
        return given

    def close(self) -> None:
        """Drop it."""
        try:
            self.ask("drop")
        finally:
            self._stack.close()


@contextmanager
def held(
    workers: WorkerPool, problem: Problem, call_plan: CallPlan, sheet: HardwareSheet, cancel: int, *, fresh: bool = False
) -> Iterator[HostStore | DeviceStoreClient]:
    """Hold a plan's tensors: on the device where the problem is large and that works, else, or `fresh`, in shared memory.

    Where the block failed a process may still be writing into shared memory: it is given to nobody then.
    """
    if not fresh and is_large(workers, problem) and not obstacle(workers, problem, sheet, cancel):
        kept = DeviceStoreClient(workers, problem, cancel)
        try:
            yield kept
        finally:
            kept.close()
        return
    store, unused = HostStore(problem.abi, call_plan.calls, take=Memory if fresh else workers.memory.take), False
    try:
        yield store
        unused = True
    finally:
        store.give_back(workers.memory.put if unused and not fresh else Memory.close)


def is_large(workers: WorkerPool, problem: Problem) -> bool:
    """Whether a problem's tensors are better not moved through the host's memory."""
    return workers.device is not None and problem.abi.nbytes >= MIDDLE_BYTES


def device_stores(stores: Sequence[HostStore | DeviceStoreClient]) -> tuple[str, ...]:
    """Name the device store of each, or nothing."""
    return tuple(store.store if isinstance(store, DeviceStoreClient) else "" for store in stores)


def shared(stores: Sequence[HostStore | DeviceStoreClient]) -> dict[str, int]:
    """Give the memory of those that are in none, by the names that trusted phases know."""
    found: dict[str, int] = {}
    for index, store in enumerate(stores):
        if isinstance(store, HostStore):
            found |= {f"inputs{index}": store.inputs_memory.fd, f"outputs{index}": store.outputs_memory.fd}
    return found


def obstacle(workers: WorkerPool, problem: Problem, sheet: HardwareSheet, cancel: int) -> str:
    """Say why the tensors of a large problem pass through the host's memory; empty where they stay on the device.

    Whether processes can share the device's memory here is tried once.
    """
    if workers.wary:
        return "its reference is a stranger's, which shares no device memory with anybody"
    if problem.abi.nbytes > DEVICE_SHARE * sheet.memory_gb * 1e9:
        return f"they take more than {DEVICE_SHARE:.0%} of the device's memory, and the oracle needs up to five times as much"
    if problem.id in workers.learnt:
        return workers.learnt[problem.id]
    if _SHARING not in workers.learnt:
        workers.learnt[_SHARING] = _try(workers, problem, cancel)
    return workers.learnt[_SHARING]


def give_way(workers: WorkerPool, problem: Problem) -> bool:
    """Have the tensors of a large problem pass through the host's memory from now on; False where that is so already."""
    if not is_large(workers, problem) or workers.learnt.get(_SHARING) != "" or problem.id in workers.learnt:
        return False
    workers.learnt[problem.id] = "the device had too little memory for them beside the oracle"
    return True


def _asked(workers: WorkerPool, job: DeviceStoreJob, problem: Problem, cancel: int) -> Finished:
    try:
        return workers.ask("store", job.model_dump_json().encode(), {}, time.monotonic() + ORDER_S, cancel, problem=problem)
    except DeadlineError:
        what = f"The oracle server did not {job.order} tensors on the device within {ORDER_S:.0f} s."
        raise MachineError(what, "Check the device with nvidia-smi.") from None


def _try(workers: WorkerPool, problem: Problem, cancel: int) -> str:
    """Have a sandboxed process map what the oracle server has made."""
    done = _asked(workers, DeviceStoreJob(store="", order="try"), problem, cancel)
    if not done.given:
        return f"the driver shares no device memory here: {telling_part(done.log)}"
    try:
        shared = {"carried": done.given[0]}
        with workers.untrusted(workers.native, "probe", b"carried", shared, gpu=True, cancel=cancel) as child:
            works = child.receive(time.monotonic() + ORDER_S) == WORKS
            return "" if works else f"a sandbox cannot map device memory here: {telling_part(child.log.text)}"
    except DeadlineError:
        return "a sandbox that was to map device memory did not answer"
    finally:
        for fd in done.given:
            os.close(fd)
