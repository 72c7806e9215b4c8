"""The tensors of a timed session: base inputs, and what went into and came out of the calls that are judged."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tools.errors import MachineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking.call_plan import new_seed
from tools.evaluation.supervisor.checking.correctness import ORACLE_S
from tools.evaluation.supervisor.checking.device_store_client import DeviceStoreClient, device_stores, held, shared
from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.distributions import AS_MADE
from tools.evaluation.wire.jobs.inputs import InputsJob
from tools.evaluation.wire.tensor_store import HostStore
from tools.logs import telling_part
from tools.records import HardwareSheet, Problem


class TimingStore:
    """A store whose first call holds the base inputs and whose others keep the inputs of validated calls, as a context manager."""

    def __init__(
        self, workers: WorkerPool, problem: Problem, validated: int, sheet: HardwareSheet, cancel: int, *, fresh: bool = False
    ) -> None:
        """Plan room; entering takes it. `fresh` is shared memory that goes to nobody else afterwards: a candidate may map it."""
        specs = tuple(CallSpec(seed=new_seed(), distribution=AS_MADE, group=AS_MADE) for _ in range(1 + validated))
        self.call_plan = CallPlan(problem=problem.model_dump_json(), shake=None, calls=specs)
        self._workers, self._problem, self._sheet, self._cancel = workers, problem, sheet, cancel
        self._fresh = fresh
        self._stack = ExitStack()

    @property
    def first(self) -> CallPlan:
        """Only the call whose inputs are made."""
        return self.call_plan.model_copy(update={"calls": self.call_plan.calls[:1]})

    @property
    def shared(self) -> dict[str, int]:
        """Its memory, by the names trusted phases know; none of a device store."""
        return shared([self.store])

    @property
    def device_stores(self) -> tuple[str, ...]:
        """Its device store's name, if it has one."""
        return device_stores([self.store])

    def fill(self) -> None:
        """Have the base inputs made."""
        job = InputsJob(call_plans=(self.first,), device="cuda", device_stores=self.device_stores).model_dump_json().encode()
        limit, stored = time.monotonic() + ORACLE_S, any(self.device_stores)
        done = self._workers.ask("inputs", job, self.shared, limit, self._cancel, problem=self._problem, stored=stored)
        if not done.answer:
            raise MachineError(f"The inputs could not be made: {telling_part(done.log)}", "Run the problem's file by itself on this GPU.")

    def __enter__(self) -> Self:
        """Hold the memory while the block runs."""
        holding = held(self._workers, self._problem, self.call_plan, self._sheet, self._cancel, fresh=self._fresh)
        self.store: HostStore | DeviceStoreClient = self._stack.enter_context(holding)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give it back; where the block failed a process may still be writing into it."""
        self._stack.__exit__(kind, error, trace)
