"""The supervisor's side of a runner: reveals inputs, takes outputs, holds the clock, and names how a runner failed."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tools.evaluation.processes.allowance import Allowance, StarvedError
from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking import weakening
from tools.evaluation.supervisor.checking.carriers import carrier
from tools.evaluation.supervisor.checking.device_store_client import DeviceStoreClient
from tools.evaluation.wire.channel import REPLY_BYTES, Command, Load, Order, Patch, Reply, State, fill_pattern
from tools.evaluation.wire.defences import Defence
from tools.evaluation.wire.jobs.runner import RunnerJob
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.tensor_store import HostStore
from tools.records import Verdict

LISTENING_S = 5.0
"""How long the call that is listened to may take beyond four times the longest call before it; it is not worth more."""

STRAYED = "forward left another CUDA stream or device current than it was called with; restore both before it returns"
IN_FLIGHT = (
    "its outputs changed after forward had returned: work was still in flight on another stream or thread; "
    "make the stream that was current when forward was called wait for all of it"
)

SET_UP = "while it was set up"
"""When a runner failed that never answered."""


class RunError(Exception):
    """The candidate ended the exchange; data for a verdict, caught by whoever started it."""

    def __init__(self, verdict: Verdict, reason: str, log: str = "", rule: str | None = None) -> None:
        """Keep what the evaluation will say."""
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason
        self.log = log
        self.rule = rule


class RunnerClient:
    """One runner from its start to its death, as a context manager."""

    def __init__(
        self,
        workers: WorkerPool,
        job: RunnerJob,
        store: HostStore | DeviceStoreClient,
        deadline: float,
        cancel: int,
        *,
        gpu: bool,
        runner: Child | None = None,
        allowance: Allowance | None = None,
        board: Memory | None = None,
    ) -> None:
        """Prepare; entering starts the runner, or gives the job to a waiting `runner`.

        `deadline` is a moment of the clock; with an `allowance` the candidate's own time counts instead. With a `board` it can make
        chained calls.
        """
        self._workers = workers
        self._job = job
        self._carrier = carrier(store)
        self._exchange = self._carrier.exchange
        self._deadline = weakening.deadline(deadline, workers.off)
        self._cancel = cancel
        self._gpu = gpu
        self._runner = runner
        self._allowance = allowance
        self._board = {"chain": board.fd} if board is not None else {}
        self._stack = ExitStack()
        self._child: Child | None = None
        self._longest_s = 0.0
        self._paint = 0
        self._pattern = Load(0)

    def __enter__(self) -> Self:
        """Start the runner and wait until the candidate's module is made."""
        try:
            self._memory = self._take()
            shared = {"exchange": self._memory.fd, **self._carrier.open(self._memory, self._stack, self._next_poison()), **self._board}
            self._child = self._runner or self._stack.enter_context(self._workers.runner(gpu=self._gpu, cancel=self._cancel))
            if self._runner is not None:
                self._stack.callback(self._runner.send, Command(Order.STOP).pack())
            if self._allowance is not None:
                self._allowance.begin(self._child)
            self._child.hand("runner", self._job.model_dump_json().encode(), shared)
            self._expect(State.READY, SET_UP)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the runner and everything it started; one that was given is told to wait for another job."""
        self._stack.close()

    def _take(self) -> Memory:
        """Take the memory to share: pages of dead runners where this one will be dead at the end, too, and with it all it has started."""
        if self._runner is not None or self._workers.off or not self._workers.isolation(gpu=self._gpu).namespaces:
            memory = Memory(self._exchange.size)
            self._stack.callback(memory.close)
            return memory
        memory = self._workers.exchanges.take(self._exchange.size)
        # the first to be called back is the last: then the runner's process namespace has ended
        self._stack.callback(self._workers.exchanges.put, memory)
        self._exchange.wipe(memory)
        return memory

    @property
    def log(self) -> str:
        """What it has printed so far."""
        assert self._child is not None
        return self._child.log.text

    def give(self, call: int) -> None:
        """Lay the inputs of a call of the plan out; `Load.ALL` makes the runner take them."""
        self._carrier.give(call)

    def patch(self, chance: random.Random) -> int:
        """Lay changed elements of the inputs out and say how many; `Load.PATCHES` makes the runner take them."""
        patches = self._carrier.draw(chance)
        self._exchange.write_patches(self._memory, patches)
        return len(patches)

    def call(self, load: Load, patches: int = 0) -> Reply:
        """Have it run once, and give microseconds by its own events and of its host part: hints.

        Nothing that it could see before says whether the outputs will be collected.
        """
        assert self._child is not None
        load = weakening.load(load, self._workers.off)
        if load & Load.ALL:
            self._paint = fill_pattern(bool(load & Load.POISON_B))
        start = time.perf_counter_ns()
        self._child.send(Command(Order.CALL, load, patches).pack())
        reply = self._expect(State.DONE, "in its forward call")
        self._longest_s = max(self._longest_s, (time.perf_counter_ns() - start) / 1e9)
        return reply

    def pack(self) -> float:
        """Have it pack its weights once more, and give microseconds by its own events."""
        assert self._child is not None
        self._child.send(Command(Order.PACK).pack())
        return self._expect(State.DONE, "while it packed its weights").event_us

    def draw_chain(self, chance: random.Random, calls: int, judged: int) -> list[list[Patch]]:
        """Choose which elements of the inputs change before each of a chain's calls, of which that number `judged` will be kept."""
        return self._carrier.draw_chain(chance, calls, judged)

    def begin_chain(self, load: Load) -> None:
        """Have it make the calls that are on the board."""
        assert self._child is not None
        self._child.send(Command(Order.CHAIN, load).pack())

    def end_chain(self) -> bool:
        """Wait until nothing of the chain is in flight; False where the runner can make no chain."""
        assert self._child is not None
        reply = self._expect(State.DONE, "in chained forward calls", or_else=State.UNABLE)
        return reply.state is State.DONE

    def _next_poison(self) -> int | None:
        """What to fill the place of the outputs with, another pattern each time: before the first call, and as soon as outputs were taken.

        Done only before a call whose outputs will be taken, it would tell the runner which calls are judged.
        """
        load = weakening.load(self._pattern, self._workers.off)
        self._pattern ^= Load.POISON_B
        return None if load & Load.UNPOISONED else fill_pattern(bool(load & Load.POISON_B))

    def listen(self) -> tuple[tuple[str, str], ...]:
        """Have it run once more on inputs already given, and name what ran; nothing where it does not get that far.

        Nothing can be asked of the runner afterwards.
        """
        allowed_s = LISTENING_S + 4 * self._longest_s
        self._deadline = min(self._deadline, time.monotonic() + allowed_s)
        if self._allowance is not None:
            assert self._child is not None
            self._allowance = Allowance(allowed_s)
            self._allowance.begin(self._child)
        try:
            self.call(Load.ALL | Load.AUDIT)
        except RunError:
            # all calls that count have been made
            return ()
        return tuple(self._exchange.read_heard(self._memory))

    def collect(self, call: int | None, run: int = 0, *, number: int = 0) -> None:
        """Take the outputs of the last call, or of that `number` in the last chain, and hold them and the inputs against the ABI.

        They are kept in the store as those of `call` and its `run`, and so are the inputs where elements of them have changed; of no
        call, they are only looked at.
        """
        assert self._child is not None
        if Defence.COLLECTED_AT_ONCE in self._workers.off:
            time.sleep(weakening.LATE_S)
        self._child.send(Command(Order.COLLECT, number=number).pack())
        reply = self._expect(State.COLLECTED, "while its outputs were read")
        if reply.late:
            raise self._failure(Verdict.CHEATED, IN_FLIGHT, rule="work-in-flight")
        if Defence.OUTPUT_ABI not in self._workers.off:
            self._check_outputs()
        compare = Defence.INPUTS_COMPARED not in self._workers.off
        changed = self._carrier.take(call, run, self._next_poison(), compare=compare)
        if changed:
            raise self._failure(Verdict.CHEATED, f"the call changed its input {changed}", rule="input-mutation")
        if Defence.RED_ZONES not in self._workers.off and self._job.plan is None:
            self._check_zones()

    def _check_outputs(self) -> None:
        shapes = self._exchange.read_shapes(self._memory)
        specs = self._job.abi.outputs
        structures = self._structures()
        if len(shapes) != len(specs):
            beside, returned = len(specs) - len(self._job.abi.returned), len(self._job.abi.returned)
            raise self._failure(Verdict.WRONG, f"forward returned {len(shapes) - beside} tensors, the ABI says {returned}{structures}")
        if structures:
            raise self._failure(Verdict.WRONG, f"forward returned its tensors in another structure{structures}")
        for shape, spec in zip(shapes, specs, strict=True):
            if (wrong := shape.mismatch(spec)) is not None:
                raise self._failure(Verdict.WRONG, wrong)

    def _structures(self) -> str:
        """Show what forward returned beside what the reference returns; where they are made alike, and where that is not known, nothing."""
        said, wanted = self._exchange.read_structure(self._memory), self._job.abi.returns
        return f": {_short(said)}, and the reference {_short(wanted)}" if wanted and said != wanted else ""

    def _check_zones(self) -> None:
        """A sealed runner has zones around all of its buffers and ends by itself."""
        zones = self._exchange.zones
        for spec, start in zip(zones.specs, zones.offsets, strict=True):
            if not bool((self._memory.bytes_at(start, spec.nbytes) == self._paint).all()):
                raise self._failure(Verdict.WRONG, f"the call wrote outside of its memory, beside its input {spec.name}")

    def _expect(self, state: State, when: str, *, or_else: State | None = None) -> Reply:
        assert self._child is not None
        data = self._receive(self._child, when)
        reply = Reply.unpack(data) if data is not None else None
        if reply is not None and reply.state in (state, or_else):
            return reply
        if reply is not None and reply.state is State.STRAYED:
            if Defence.CALLER_STREAM in self._workers.off:
                return reply
            raise self._failure(Verdict.CHEATED, STRAYED, rule="stream-left")
        if reply is not None and reply.state is State.FAILED:
            self._last_words()
            raise self._failure(Verdict.CRASHED, f"it raised an exception {when}: {_last_line(self.log)}")
        if data is not None:
            raise self._failure(Verdict.CRASHED, f"it sent what is no answer {when}")
        self._last_words()
        raise self._failure(Verdict.CRASHED, f"{self._child.ending} {when}")

    def _receive(self, child: Child, when: str) -> bytes | None:
        """Wait for its answer, as long as its own time lasts, or the clock's."""
        allowance = self._allowance
        try:
            if allowance is None:
                return child.receive(self._deadline, REPLY_BYTES + 1)
            return allowance.wait(lambda moment: child.receive(moment, REPLY_BYTES + 1))
        except StarvedError:
            assert allowance is not None
            raise self._failure(Verdict.INFRASTRUCTURE, f"{allowance.starved()} {when}") from None
        except DeadlineError:
            said = "it did not answer within what --timeout leaves it" if allowance is None else allowance.overrun()
            raise self._failure(Verdict.TIMED_OUT, f"{said} {when}") from None

    def _last_words(self) -> None:
        """Give a runner that has failed a moment to end by itself, so that its log is whole."""
        assert self._child is not None
        try:
            self._child.wait(min(self._deadline, time.monotonic() + 2.0))
        except DeadlineError:
            return

    def _failure(self, verdict: Verdict, reason: str, rule: str | None = None) -> RunError:
        return RunError(verdict, reason, self.log, rule)


def _short(structure: str, most: int = 300) -> str:
    return structure if len(structure) <= most else f"{structure[:most]}…"


def _last_line(log: str) -> str:
    return (log.strip().splitlines() or ["no message"])[-1][:300]
