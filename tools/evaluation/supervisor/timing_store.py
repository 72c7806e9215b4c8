"""The tape of a timed session: base inputs, and what went into and came out of the calls that are judged."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tools.errors import MachineError
from tools.evaluation.processes.worker_pool import Workshop
from tools.evaluation.supervisor.call_plan import new_seed
from tools.evaluation.supervisor.correctness import ORACLE_S
from tools.evaluation.supervisor.device_store_client import VaultTape, held, shared, vaults
from tools.evaluation.wire.distributions import AS_MADE
from tools.evaluation.wire.jobs.inputs import InputsJob
from tools.evaluation.wire.tensor_store import CallSpec, Sitting, Tape
from tools.logs import telling_part
from tools.records import HardwareSheet, Problem


class TimingTape:
    """A tape whose first call holds the base inputs and whose others keep the inputs of validated calls, as a context manager."""

    def __init__(self, shop: Workshop, problem: Problem, validated: int, sheet: HardwareSheet, cancel: int, *, fresh: bool = False) -> None:
        """Plan room; entering takes it. `fresh` is shared memory that goes to nobody else afterwards: a candidate may map it."""
        specs = tuple(CallSpec(seed=new_seed(), distribution=AS_MADE, group=AS_MADE) for _ in range(1 + validated))
        self.sitting = Sitting(problem=problem.model_dump_json(), shake=None, calls=specs)
        self._shop, self._problem, self._sheet, self._cancel = shop, problem, sheet, cancel
        self._fresh = fresh
        self._stack = ExitStack()

    @property
    def first(self) -> Sitting:
        """Only the call whose inputs are made."""
        return self.sitting.model_copy(update={"calls": self.sitting.calls[:1]})

    @property
    def shared(self) -> dict[str, int]:
        """Its memory, by the names trusted phases know; none of a vault."""
        return shared([self.tape])

    @property
    def vaults(self) -> tuple[str, ...]:
        """Its vault's name, if it has one."""
        return vaults([self.tape])

    def fill(self) -> None:
        """Have the base inputs made."""
        job = InputsJob(sittings=(self.first,), device="cuda", vaults=self.vaults).model_dump_json().encode()
        done = self._shop.ask("inputs", job, self.shared, time.monotonic() + ORACLE_S, self._cancel, problem=self._problem)
        if not done.answer:
            raise MachineError(f"The inputs could not be made: {telling_part(done.log)}", "Run the problem's file by itself on this GPU.")

    def __enter__(self) -> Self:
        """Hold the memory while the block runs."""
        holding = held(self._shop, self._problem, self.sitting, self._sheet, self._cancel, fresh=self._fresh)
        self.tape: Tape | VaultTape = self._stack.enter_context(holding)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give it back; where the block failed a process may still be writing into it."""
        self._stack.__exit__(kind, error, trace)
