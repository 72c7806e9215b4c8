"""The supervisor's side of the baseline process; trusted on both ends, and kept for the next candidate on the same problem."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Literal, NamedTuple

from tools.errors import MachineError
from tools.evaluation.baseline import BaselineJob
from tools.evaluation.channel import REPLY_BYTES, Command, Load, Order, Reply, State
from tools.evaluation.child import Child, DeadlineError
from tools.evaluation.lead_in import flush_bytes
from tools.evaluation.timing_tape import TimingTape
from tools.evaluation.workshop import Workshop
from tools.records import HardwareSheet, Problem

Stage = Literal["search", "confirm"]

START_S = 300.0
COMPILE_S = 600.0
"""torch.compile of a large network takes minutes the first time."""


class RivalTimes(NamedTuple):
    """One call by two clocks."""

    event_us: float
    answer_us: float


class RivalProcess:
    """A live baseline process."""

    def __init__(self, shop: Workshop, held: TimingTape, sheet: HardwareSheet, cancel: int) -> None:
        """Start it with the base inputs that are `held` and run every way of calling it once."""
        self.names = ["eager", "compile"]
        """What can be timed."""
        self.notes: list[str] = []
        self._stack = ExitStack()
        flush = flush_bytes(sheet)
        job = BaselineJob(sitting=held.sitting, flush_bytes=flush, cache="" if shop.wary else str(shop.trusted_cache))
        try:
            self._child: Child = self._stack.enter_context(shop.trusted("baseline", job.model_dump_json().encode(), held.shared, cancel))
            self._expect(State.READY, START_S)
            if self._call("eager", START_S) is None:
                raise MachineError(f"The reference fails on this device: {self._last()}", "Run the problem's file by itself on this GPU.")
            if self._call("compile", COMPILE_S) is None:
                self.names.remove("compile")
                self.notes.append(f"torch.compile cannot run the reference: {self._last()}")
        except BaseException:
            self._stack.close()
            raise

    def call(self, name: str, *, primed: bool = True) -> RivalTimes:
        """Time one call."""
        times = self._call(name, START_S, primed=primed)
        if times is None:
            raise MachineError(f"The {name} baseline failed while it was timed: {self._last()}", "Check the device with nvidia-smi.")
        return times

    def watch(self, cancel: int) -> None:
        """Give up when `cancel` turns readable, from now on."""
        self._child.watch(cancel)

    def close(self) -> None:
        """End the process."""
        self._stack.close()

    def _call(self, name: str, limit_s: float, *, primed: bool = False) -> RivalTimes | None:
        load = (Load.COMPILED if name == "compile" else Load(0)) | (Load.PRIMED if primed else Load(0))
        start = time.perf_counter_ns()
        self._child.send(Command(Order.CALL, load).pack())
        reply = self._expect(State.DONE, limit_s)
        return RivalTimes(reply.event_us, (time.perf_counter_ns() - start) / 1e3) if reply is not None else None

    def _expect(self, state: State, limit_s: float) -> Reply | None:
        try:
            data = self._child.receive(time.monotonic() + limit_s, REPLY_BYTES)
        except DeadlineError:
            raise MachineError(
                f"The baseline process did not answer within {limit_s:.0f} s.", "Check the device with nvidia-smi."
            ) from None
        reply = Reply.unpack(data) if data is not None else None
        if reply is None:
            raise MachineError(f"The baseline process ended: {self._last()}", "Check the device's memory with nvidia-smi.")
        return reply if reply.state is state else None

    def _last(self) -> str:
        return (self._child.log.text.strip().splitlines() or ["no reason given"])[-1][:300]


class RivalShelf:
    """Keeps the baseline process of the last problem: compiling a reference takes far longer than timing it."""

    def __init__(self, shop: Workshop) -> None:
        """Start with none."""
        self._shop = shop
        self._kept: tuple[str, RivalProcess] | None = None

    def rival(self, problem: Problem, sheet: HardwareSheet, stage: Stage, cancel: int) -> RivalProcess:
        """Give the baseline process of `problem`; a confirmation gets a new one."""
        if self._kept is not None and (self._kept[0] != problem.id or stage == "confirm"):
            self.clear()
        if self._kept is None:
            held = TimingTape(problem, 0)
            try:
                held.fill(self._shop, cancel)
                self._kept = (problem.id, RivalProcess(self._shop, held, sheet, cancel))
            finally:
                held.close()
        rival = self._kept[1]
        rival.watch(cancel)
        return rival

    def clear(self) -> None:
        """End the process, if there is one."""
        if self._kept is not None:
            self._kept[1].watch(-1)
            self._kept[1].close()
            self._kept = None

    def rest(self) -> None:
        """Leave the process waiting for the next candidate."""
        if self._kept is not None:
            self._kept[1].watch(-1)
