"""The timekeeper: opens the gate before a candidate's chained calls and sees the device's flag behind them, outside of its process.

It works in the baseline process, which does nothing else meanwhile: no other thread delays what it sees.
"""

from __future__ import annotations

import statistics
import time
from threading import Timer
from typing import TYPE_CHECKING, Any

from tools.evaluation.wire import chained_calls
from tools.evaluation.wire.chain_board import VALUES_BYTES, ChainBoard, Word
from tools.evaluation.wire.channel import Command, Load, Reply, State
from tools.evaluation.wire.lead_in import ColdCache, lead_in
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.stream_gate import Gate, gate
from tools.evaluation.wire.written import Written
from tools.float8 import writable
from tools.records import ABI, TensorSpec

if TYPE_CHECKING:
    import torch

HOLD_S = 0.25
"""How long calls may take to be issued behind the gate; it opens then in any case, and what the host waits for comes."""
_FILLS = 3
"""Calls that only fill their outputs, timed for each of the lead-ins of which the median counts: 15 in all."""
_SCRATCH = 1 << 20
"""Elements of a stand-in for an input, at most: changing a few of them costs as much as of a large one."""


class Timekeeper:
    """One board, and what a chain costs beside its calls."""

    def __init__(self, board: Memory, values: Memory, abi: ABI, cold: ColdCache | None, device: str = "cuda") -> None:
        """Hold the clock for the chains on `board`, whose new `values` nobody sees before; raises DriverError where there can be none."""
        self._board, self._values = ChainBoard(board), values
        self._gate: Gate = gate(self._board, device)
        self._cold, self._device = cold, device
        # what is put back takes as long as it is large
        whole = {place: _scratch(spec, device) for place, spec in enumerate(abi.inputs) if place in abi.written_places}
        state = {spec.name: _scratch(spec, device) for spec in abi.parameters if spec.name in abi.updated}
        self._inputs = [whole[place] if place in whole else _scratch(spec, device, _SCRATCH) for place, spec in enumerate(abi.inputs)]
        self._written = Written(abi, whole.__getitem__, state.__getitem__)
        copied = [spec for place, spec in enumerate(abi.outputs) if place not in abi.aliases]
        self._outputs = [_scratch(spec, device) for spec in copied]
        self._taken = [_scratch(spec, device) for spec in copied]
        self._warm_up()

    def time(self, command: Command) -> Reply:
        """Time the chain that a runner makes, or the lead-ins alone: microseconds from the gate's opening to the flag.

        The second time is from the flag to the end of all that the runner had in flight; for lead-ins, what filling their outputs took.
        """
        if command.load & Load.LEAD_IN:
            return self._lead_ins(command.load)
        return self._watched(command.number / 1e3)

    def _watched(self, limit_s: float) -> Reply:
        board = self._board
        sequence = board.get(Word.SEQUENCE)
        is_ready = _seen(board, Word.READY, sequence, HOLD_S)
        values = self._values.bytes_at(0, VALUES_BYTES)
        board.set(Word.FLAG, 0)
        board.values[:] = values
        start = _opened(board, sequence)
        if not _seen(board, Word.FLAG, sequence, limit_s):
            return Reply(State.FAILED)
        flagged = time.perf_counter_ns()
        if not _seen(board, Word.ENDED, sequence, limit_s):
            return Reply(State.FAILED)
        ended = time.perf_counter_ns()
        return Reply(State.DONE, (flagged - start) / 1e3, (ended - flagged) / 1e3, late=not is_ready)

    def _lead_ins(self, load: Load) -> Reply:
        """Time a chain whose calls only fill their outputs, and such a call by events."""
        board = self._board
        sequence = board.get(Word.SEQUENCE)
        filled_us = statistics.median(self._filled_us(value, load) for value in range(_FILLS))
        rescue = Timer(HOLD_S, _opened, (board, sequence))
        rescue.start()
        chained_calls.issue(board, self._gate, self._inputs, self._cold, self, load, self._written)
        rescue.cancel()
        late = board.get(Word.GATE) == sequence
        start = _opened(board, sequence)
        found = _seen(board, Word.FLAG, sequence, HOLD_S)
        flagged = time.perf_counter_ns()
        chained_calls.settle(self._cold)
        return Reply(State.DONE if found else State.FAILED, (flagged - start) / 1e3, filled_us, late=late)

    def _warm_up(self) -> None:
        """Run once what a chain runs: a kernel that is loaded behind a shut gate waits for it to open."""
        import torch

        for value in self._inputs:
            flat = writable(value.view(-1))
            flat.index_copy_(0, torch.zeros(1, dtype=torch.int64, device=flat.device), flat[:1].clone())
        self._written.put_back()
        self.take(self.call(0), 0)
        self._gate.fence()
        if self._cold is not None:
            self._cold.clear()
        chained_calls.settle(self._cold)

    def call(self, number: int) -> object:
        """Fill outputs: what stands around a call is what such a chain takes beside that."""
        for output in self._outputs:
            output.fill_(number % 2)
        return None

    def take(self, result: object, number: int) -> None:
        """Copy them."""
        for target, output in zip(self._taken, self._outputs, strict=True):
            target.copy_(output)

    def _filled_us(self, number: int, load: Load) -> float:
        import torch

        event: Any = torch.cuda.Event
        first, last = event(enable_timing=True), event(enable_timing=True)
        lead_in(None if load & Load.WARM else self._cold, primed=True)
        first.record()
        self.call(number)
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) * 1e3


def _opened(board: ChainBoard, sequence: int) -> int:
    """Open the gate and say when, in nanoseconds."""
    start = time.perf_counter_ns()
    board.set(Word.GATE, sequence)
    return start


def _seen(board: ChainBoard, word: Word, sequence: int, limit_s: float) -> bool:
    """Watch a number of the board without pause until it is `sequence`; False where that takes too long."""
    end = time.perf_counter_ns() + int(limit_s * 1e9)
    while board.get(word) != sequence:
        if time.perf_counter_ns() > end:
            return False
    return True


def _scratch(spec: TensorSpec, device: str, most: int | None = None) -> torch.Tensor:
    import torch

    numel = spec.numel if most is None else min(spec.numel, most)
    return torch.zeros(numel, dtype=getattr(torch, spec.dtype), device=device)
