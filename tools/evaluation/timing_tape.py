"""The tape of a timed session: base inputs, and what went into and came out of the calls that are judged."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from tools.errors import MachineError
from tools.evaluation.correctness import ORACLE_S
from tools.evaluation.distributions import AS_MADE
from tools.evaluation.inputs import InputsJob
from tools.evaluation.schedule import new_seed
from tools.evaluation.shelf import Shelf
from tools.evaluation.tape import CallSpec, Sitting, Tape
from tools.evaluation.workshop import Workshop
from tools.logs import telling_part
from tools.records import Problem


class TimingTape:
    """A tape whose first call holds the base inputs and whose others keep the inputs of validated calls."""

    def __init__(self, problem: Problem, validated: int, shelf: Shelf) -> None:
        """Make room, in memory from the `shelf`."""
        specs = tuple(CallSpec(seed=new_seed(), distribution=AS_MADE, group=AS_MADE) for _ in range(1 + validated))
        self.sitting = Sitting(problem=problem.model_dump_json(), shake=None, calls=specs)
        self.tape = Tape(problem.abi, specs, shelf=shelf)
        self._problem = problem

    @property
    def first(self) -> Sitting:
        """Only the call whose inputs are made."""
        return self.sitting.model_copy(update={"calls": self.sitting.calls[:1]})

    @property
    def shared(self) -> dict[str, int]:
        """Its memory, by the names trusted phases know."""
        return {"inputs0": self.tape.inputs_memory.fd, "outputs0": self.tape.outputs_memory.fd}

    def fill(self, shop: Workshop, cancel: int) -> None:
        """Have the base inputs made."""
        job = InputsJob(sittings=(self.first,), device="cuda")
        done = shop.ask("inputs", job.model_dump_json().encode(), self.shared, time.monotonic() + ORACLE_S, cancel, problem=self._problem)
        if not done.answer:
            raise MachineError(f"The inputs could not be made: {telling_part(done.log)}", "Run the problem's file by itself on this GPU.")

    def __enter__(self) -> Self:
        """Hold the memory while the block runs."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give it back; where the block failed a process may still be writing into it."""
        self.tape.close(unused=kind is None)
