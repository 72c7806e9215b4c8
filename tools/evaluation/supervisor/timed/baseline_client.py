"""The supervisor's side of the baseline process; trusted on both ends, and kept for the next candidate on the same problem."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tools.errors import MachineError
from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.device_lock import Door, OpenDoor
from tools.evaluation.processes.tensor_room import in_words
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking.call_plan import Stage
from tools.evaluation.supervisor.checking.device_store_client import DeviceStoreClient, is_large, obstacle
from tools.evaluation.supervisor.timed.compiling import COMPILE_S, Compiling
from tools.evaluation.supervisor.timed.statistics import JustTaken, LeadIns
from tools.evaluation.supervisor.timed.timing_store import TimingStore
from tools.evaluation.wire.chain_board import BOARD_BYTES, VALUES_BYTES
from tools.evaluation.wire.channel import REPLY_BYTES, Command, Load, Order, Reply, State
from tools.evaluation.wire.configurations import Configurations, read_configurations
from tools.evaluation.wire.jobs.baseline import BaselineJob
from tools.evaluation.wire.lead_in import flush_bytes
from tools.evaluation.wire.memory import Memory
from tools.records import HardwareSheet, Problem, content_hash

START_S = 300.0
_HANDLE_S = 10.0
FIRST_S = 60.0
"""Limit of the first compiled call, with nobody else on the device: it launches, and compiles what lies behind a break in the graph."""
TUNE_S = 3000.0
"""So does max-autotune, for every product in it."""
TUNED = "max-autotune"
_LOADS = {"eager": Load(0), "compile": Load.COMPILED, TUNED: Load.TUNED}
_WARM_UPS = 3
"""Calls until max-autotune has recorded its CUDA graph and replays it."""
KEPT_SHARE = 1 / 16
"""Share of the device's memory that the tensors of all kept problems may need together; the newest stays in any case."""
_HELD = 3.0
"""How many times its problem's tensors a baseline process holds: inputs, outputs, and what the reference makes on the way."""


class BaselineProcess:
    """A live baseline process: others may be on the device while it starts, and none from `settle` on.

    A second one compiles meanwhile, beside whoever is timed, and takes the first one's place with the first `settle` after it is done.
    """

    def __init__(
        self,
        workers: WorkerPool,
        held: TimingStore,
        sheet: HardwareSheet,
        cancel: int,
        *,
        max_autotune: bool = False,
        compile_s: float,
        door: Door | None = None,
    ) -> None:
        """Start both with the base inputs that are `held`, run the reference eagerly once and begin to have it compiled.

        They come onto the device by its `door`, and rest while anybody is alone there, until they wait for orders or compile.
        """
        door = door or OpenDoor()
        self.names = ["eager"]
        """What can be timed by now."""
        self._notes: list[str] = []
        self._compiling: Compiling | None = None
        self._slow = False
        self._stack, self._memory = ExitStack(), ExitStack()
        self.board, self.values = Memory(BOARD_BYTES), Memory(VALUES_BYTES)
        """Where chained calls are laid out for runners to see, and what changes before them, which they do not see."""
        self.lead_ins = LeadIns()
        """What chains take beside their calls."""
        self.alone = JustTaken()
        """Times of the baselines with no candidate's process alive."""
        self._released: set[str] = set()
        """Of what can be timed, what has to ask for the device's memory again first."""
        for memory in (self.board, self.values):
            self._memory.callback(memory.close)
        flush = flush_bytes(sheet)
        cache = "" if workers.wary else str(workers.trusted_cache)
        self._chosen = f"{cache}/{content_hash(held.call_plan.problem)}.configurations.json" if cache else ""
        job = BaselineJob(call_plan=held.call_plan, flush_bytes=flush, cache=cache, configurations=self._chosen, max_autotune=max_autotune)
        try:
            with ExitStack() as handing:
                with door.shared():
                    shared = held.store.lent(handing) if isinstance(held.store, DeviceStoreClient) else held.shared
                    shared = {**shared, "chain": self.board.fd, "values": self.values.fd}
                    given = (job.model_dump_json().encode(), shared, cancel)
                    self._compiling = Compiling(workers, *given, compile_s)
                    self._child: Child = self._stack.enter_context(workers.trusted("baseline", *given))
                    for child in (self._compiling.child, self._child):
                        child.await_handle(time.monotonic() + _HANDLE_S)
                        handing.enter_context(door.yielding(child))
                self._expect(State.READY, START_S)
                self._compiling.begin(START_S)
                works = self._call("eager", START_S) is not None
            if not works:
                raise MachineError(f"The reference fails on this device: {self._last()}", "Run the problem's file by itself on this GPU.")
        except BaseException:
            self.close()
            raise
        self._max_autotune = max_autotune

    @property
    def notes(self) -> list[str]:
        """What fell back or failed, and what is late."""
        late = self._compiling
        said = f"torch.compile: not within {late.limit_s:g} s; it joins when it comes." if late and late.is_late else ""
        return [*self._notes, *filter(None, [said])]

    @property
    def configurations(self) -> Configurations:
        """What torch.compile's kernels were given, once it was called."""
        return read_configurations(self._chosen) if self._chosen and "compile" in self.names else {}

    @property
    def is_slow(self) -> bool:
        """Whether torch.compile was, or is, longer at it than it is waited for."""
        return self._slow or (self._compiling is not None and self._compiling.is_late)

    def remark(self, note: str) -> None:
        """Add a note."""
        self._notes.append(note)

    def await_compiled(self) -> None:
        """Wait for torch.compile within its limit; nobody is kept from the device."""
        if self._compiling is not None:
            self._compiling.wait()

    def settle(self) -> None:
        """Take over what has compiled by now, and run every compiled way of calling it, which chooses among kernels by their times."""
        compiling = self._compiling
        if compiling is None or not compiling.has_ended:
            return
        self._compiling, self._slow = None, compiling.is_late
        if not compiling.has_compiled:
            self._notes.append(f"torch.compile cannot run the reference: {compiling.last_words()}")
            compiling.close()
        else:
            self._take_over(compiling)
        if self._max_autotune:
            self._tune()

    def _take_over(self, compiling: Compiling) -> None:
        """Go on with the process that has compiled, which can call eagerly too, unless its first compiled call fails."""
        eager = self._child, self._stack
        self._child, self._stack = compiling.child, compiling.stack
        try:
            failure = "" if self._call("compile", FIRST_S) is not None else self._last()
        except MachineError as error:
            failure = error.what
        except BaseException:
            eager[1].close()
            raise
        if not failure:
            self.names.append("compile")
            self.lead_ins = LeadIns()
            eager[1].close()
            return
        self._notes.append(f"torch.compile cannot run the reference: {failure}")
        self._child, self._stack = eager
        compiling.close()

    def _tune(self) -> None:
        if any(self._call(TUNED, TUNE_S) is None for _ in range(_WARM_UPS)):
            self._notes.append(f"torch.compile with max-autotune cannot run the reference: {self._last()}")
        else:
            self.names.append(TUNED)

    def call(self, name: str) -> float:
        """Time one call, in microseconds."""
        if name in self._released:
            self._released.remove(name)
            self._call(name, START_S)
        event_us = self._call(name, START_S, primed=True)
        if event_us is None:
            raise MachineError(f"The {name} baseline failed while it was timed: {self._last()}", "Check the device with nvidia-smi.")
        return event_us

    def release(self) -> None:
        """Give back the device's memory that is kept for the next call: the oracle may need it."""
        self._child.send(Command(Order.RELEASE).pack())
        self._expect(State.DONE, START_S)
        self._released = set(self.names)

    def chain(self, load: Load, limit_s: float) -> Reply:
        """Hold the clock for a chain, as `Timekeeper.time` says; the answer's state is UNABLE where there can be none."""
        self._child.send(Command(Order.CHAIN, load, int(limit_s * 1e3)).pack())
        return self._answer(START_S + 2 * limit_s)

    def watch(self, cancel: int) -> None:
        """Give up when `cancel` turns readable, from now on."""
        self._child.watch(cancel)
        if self._compiling is not None:
            self._compiling.child.watch(cancel)

    def close(self) -> None:
        """End the processes."""
        if self._compiling is not None:
            self._compiling.close()
        self._stack.close()
        self._memory.close()

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
        return in_words((self._child.log.text.strip().splitlines() or ["no reason given"])[-1])[:300]


class BaselineCache:
    """Keeps the baseline processes of the last problems: compiling a reference takes far longer than timing it."""

    def __init__(self, workers: WorkerPool, *, max_autotune: bool = False, compile_s: float = COMPILE_S) -> None:
        """Start with none; torch.compile is waited for `compile_s` seconds a reference."""
        self._workers = workers
        self._max_autotune = max_autotune
        self._compile_s = compile_s
        self._kept: dict[str, tuple[BaselineProcess, int]] = {}
        """By problem, the one used longest ago first: its process and the bytes of its tensors."""

    def needs(self, problem: Problem, stage: Stage) -> bool:
        """Whether a process must be started; a confirmation gets a new one, unless torch.compile takes longer than it is waited for."""
        kept = self._kept.get(problem.id)
        return kept is None or (stage == "confirm" and not kept[0].is_slow)

    def started(self, problem: Problem, sheet: HardwareSheet, cancel: int, door: Door | None = None) -> BaselineProcess:
        """Start a process by a `door` of the device; whoever asked hands it over to `baseline`, or lets it go."""
        door = door or OpenDoor()
        with TimingStore(self._workers, problem, 0, sheet, cancel) as held:
            with door.shared():
                held.fill()
            made = BaselineProcess(
                self._workers, held, sheet, cancel, max_autotune=self._max_autotune, compile_s=self._compile_s, door=door
            )
        if is_large(self._workers, problem) and (reason := obstacle(self._workers, problem, sheet, cancel)):
            made.remark(f"Inputs and outputs passed through the host's memory: {reason}.")
        return made

    def baseline(self, problem: Problem, sheet: HardwareSheet, cancel: int, made: BaselineProcess | None) -> BaselineProcess:
        """Give the baseline process of `problem`, ready to be timed: `made`, or else the one that is kept. Nobody else is on the device."""
        if made is not None or problem.id not in self._kept:
            self._drop(problem.id)
            self._make_room(problem.abi.nbytes, sheet)
            self._kept[problem.id] = (made or self.started(problem, sheet, cancel), problem.abi.nbytes)
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

    def drop(self, problem: Problem) -> None:
        """End the process of a problem, if it is kept."""
        self._drop(problem.id)

    def rest(self) -> None:
        """Leave the processes waiting for the next candidate."""
        for baseline, _ in self._kept.values():
            baseline.watch(-1)

    def share(self, sheet: HardwareSheet, besides: Problem) -> float:
        """Say what part of the device's memory is held for other problems than `besides`."""
        # a copy: who is alone on the device may be changing it
        return _HELD * sum(size for name, (_, size) in list(self._kept.items()) if name != besides.id) / (sheet.memory_gb * 1e9)

    def shrink(self, left: float, sheet: HardwareSheet, besides: Problem) -> None:
        """End the processes used longest ago until the rest holds no more than `left`; that of `besides` stays. Nobody is timed."""
        for name in list(self._kept):
            if self.share(sheet, besides) <= left:
                return
            if name != besides.id:
                self._drop(name)

    def _make_room(self, nbytes: int, sheet: HardwareSheet) -> None:
        room = KEPT_SHARE * sheet.memory_gb * 1e9
        while self._kept and (len(self._kept) >= self._workers.kept or nbytes + sum(size for _, size in self._kept.values()) > room):
            self._drop(next(iter(self._kept)))

    def _drop(self, problem: str) -> None:
        if problem in self._kept:
            baseline, _ = self._kept.pop(problem)
            baseline.watch(-1)
            baseline.close()
