"""The supervisor's side of the baseline process; trusted on both ends, and kept for the next candidate on the same problem."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tools.errors import MachineError
from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.call_plan import Stage
from tools.evaluation.supervisor.device_store_client import DeviceStoreClient, is_large, obstacle
from tools.evaluation.supervisor.timing_store import TimingStore
from tools.evaluation.wire.chain_board import BOARD_BYTES, VALUES_BYTES
from tools.evaluation.wire.channel import REPLY_BYTES, Command, Load, Order, Reply, State
from tools.evaluation.wire.jobs.baseline import BaselineJob
from tools.evaluation.wire.lead_in import flush_bytes
from tools.evaluation.wire.memory import Memory
from tools.records import HardwareSheet, Problem

START_S = 300.0
COMPILE_S = 600.0
"""torch.compile of a large network takes minutes the first time."""
TUNE_S = 3000.0
"""So does max-autotune, for every product in it."""
TUNED = "max-autotune"
_LOADS = {"eager": Load(0), "compile": Load.COMPILED, TUNED: Load.TUNED}
_WARM_UPS = 3
"""Calls until max-autotune has recorded its CUDA graph and replays it."""
KEPT = 6
"""Baseline processes kept at once: problems that are worked on side by side do not drive out each other's."""
KEPT_SHARE = 1 / 16
"""Share of the device's memory that the tensors of all kept problems may need together; the newest stays in any case."""


class BaselineProcess:
    """A live baseline process: others may be on the device while it starts, and none from `settle` on."""

    def __init__(self, workers: WorkerPool, held: TimingStore, sheet: HardwareSheet, cancel: int, *, max_autotune: bool = False) -> None:
        """Start it with the base inputs that are `held`, run it eagerly once and have it compiled."""
        self.names = ["eager", "compile"]
        """What can be timed, once it has settled."""
        self.notes: list[str] = []
        self._stack = ExitStack()
        self.board, self.values = Memory(BOARD_BYTES), Memory(VALUES_BYTES)
        """Where chained calls are laid out for runners to see, and what changes before them, which they do not see."""
        for memory in (self.board, self.values):
            self._stack.callback(memory.close)
        flush = flush_bytes(sheet)
        cache = "" if workers.wary else str(workers.trusted_cache)
        job = BaselineJob(call_plan=held.call_plan, flush_bytes=flush, cache=cache, max_autotune=max_autotune)
        try:
            with ExitStack() as handing:
                shared = held.store.lent(handing) if isinstance(held.store, DeviceStoreClient) else held.shared
                shared = {**shared, "chain": self.board.fd, "values": self.values.fd}
                self._child: Child = self._stack.enter_context(workers.trusted("baseline", job.model_dump_json().encode(), shared, cancel))
                self._expect(State.READY, START_S)
            if self._call("eager", START_S) is None:
                raise MachineError(f"The reference fails on this device: {self._last()}", "Run the problem's file by itself on this GPU.")
            self._child.send(Command(Order.COMPILE).pack())
            if self._expect(State.DONE, COMPILE_S) is None:
                self._leave_out_compiled()
        except BaseException:
            self._stack.close()
            raise
        self._settled, self._max_autotune = False, max_autotune

    def settle(self) -> None:
        """Run every compiled way of calling it, which chooses among kernels by their times, unless that was done."""
        if self._settled:
            return
        self._settled = True
        if "compile" in self.names and self._call("compile", COMPILE_S) is None:
            self._leave_out_compiled()
        if self._max_autotune:
            self._tune()

    def _leave_out_compiled(self) -> None:
        self.names.remove("compile")
        self.notes.append(f"torch.compile cannot run the reference: {self._last()}")

    def _tune(self) -> None:
        if any(self._call(TUNED, TUNE_S) is None for _ in range(_WARM_UPS)):
            self.notes.append(f"torch.compile with max-autotune cannot run the reference: {self._last()}")
        else:
            self.names.append(TUNED)

    def call(self, name: str) -> float:
        """Time one call, in microseconds."""
        event_us = self._call(name, START_S, primed=True)
        if event_us is None:
            raise MachineError(f"The {name} baseline failed while it was timed: {self._last()}", "Check the device with nvidia-smi.")
        return event_us

    def chain(self, load: Load, limit_s: float) -> Reply:
        """Hold the clock for a chain, as `Timekeeper.time` says; the answer's state is UNABLE where there can be none."""
        self._child.send(Command(Order.CHAIN, load, int(limit_s * 1e3)).pack())
        return self._answer(START_S + 2 * limit_s)

    def watch(self, cancel: int) -> None:
        """Give up when `cancel` turns readable, from now on."""
        self._child.watch(cancel)

    def close(self) -> None:
        """End the process."""
        self._stack.close()

    def _call(self, name: str, limit_s: float, *, primed: bool = False) -> float | None:
        load = _LOADS[name] | (Load.PRIMED if primed else Load(0))
        self._child.send(Command(Order.CALL, load).pack())
        reply = self._expect(State.DONE, limit_s)
        return reply.event_us if reply is not None else None

    def _expect(self, state: State, limit_s: float) -> Reply | None:
        reply = self._answer(limit_s)
        return reply if reply.state is state else None

    def _answer(self, limit_s: float) -> Reply:
        try:
            data = self._child.receive(time.monotonic() + limit_s, REPLY_BYTES)
        except DeadlineError:
            raise MachineError(
                f"The baseline process did not answer within {limit_s:.0f} s.", "Check the device with nvidia-smi."
            ) from None
        reply = Reply.unpack(data) if data is not None else None
        if reply is None:
            raise MachineError(f"The baseline process ended: {self._last()}", "Check the device's memory with nvidia-smi.")
        return reply

    def _last(self) -> str:
        return (self._child.log.text.strip().splitlines() or ["no reason given"])[-1][:300]


class BaselineCache:
    """Keeps the baseline processes of the last problems: compiling a reference takes far longer than timing it."""

    def __init__(self, workers: WorkerPool, *, max_autotune: bool = False) -> None:
        """Start with none."""
        self._workers = workers
        self._max_autotune = max_autotune
        self._kept: dict[str, tuple[BaselineProcess, int]] = {}
        """By problem, the one used longest ago first: its process and the bytes of its tensors."""

    def needs(self, problem: Problem, stage: Stage) -> bool:
        """Whether a process must be started; a confirmation gets a new one."""
        return stage == "confirm" or problem.id not in self._kept

    def started(self, problem: Problem, sheet: HardwareSheet, cancel: int) -> BaselineProcess:
        """Start a process, beside others on the device; whoever asked hands it over to `baseline`, or lets it go."""
        with TimingStore(self._workers, problem, 0, sheet, cancel) as held:
            held.fill()
            made = BaselineProcess(self._workers, held, sheet, cancel, max_autotune=self._max_autotune)
        if is_large(self._workers, problem) and (reason := obstacle(self._workers, problem, sheet, cancel)):
            made.notes.append(f"Inputs and outputs passed through the host's memory: {reason}.")
        return made

    def baseline(self, problem: Problem, sheet: HardwareSheet, cancel: int, made: BaselineProcess | None) -> BaselineProcess:
        """Give the baseline process of `problem`, ready to be timed: `made`, or else the one that is kept. Nobody else is on the device."""
        if made is not None or problem.id not in self._kept:
            self._drop(problem.id)
            self._make_room(problem.abi.compulsory_bytes, sheet)
            self._kept[problem.id] = (made or self.started(problem, sheet, cancel), problem.abi.compulsory_bytes)
        self._kept[problem.id] = self._kept.pop(problem.id)
        baseline = self._kept[problem.id][0]
        baseline.watch(cancel)
        baseline.settle()
        return baseline

    def let_go(self, made: BaselineProcess | None) -> None:
        """End a process that was started and not kept."""
        # a copy: who is alone on the device may be changing it
        if made is not None and all(made is not kept for kept, _ in list(self._kept.values())):
            made.close()

    def clear(self) -> None:
        """End every process."""
        for problem in list(self._kept):
            self._drop(problem)

    def rest(self) -> None:
        """Leave the processes waiting for the next candidate."""
        for baseline, _ in self._kept.values():
            baseline.watch(-1)

    def _make_room(self, nbytes: int, sheet: HardwareSheet) -> None:
        room = KEPT_SHARE * sheet.memory_gb * 1e9
        while self._kept and (len(self._kept) >= KEPT or nbytes + sum(size for _, size in self._kept.values()) > room):
            self._drop(next(iter(self._kept)))

    def _drop(self, problem: str) -> None:
        if problem in self._kept:
            baseline, _ = self._kept.pop(problem)
            baseline.watch(-1)
            baseline.close()
