"""Chained calls of a candidate, timed from outside of its process: what its events do not show, a chain's end does.

Several calls, each with changed inputs and a cleared L2, stand between a gate that the timekeeper opens and a flag that the device sets.
What a chain takes longer than its lead-ins is what its calls took, whatever their own process says: so many calls that the timekeeper's
own jitter, divided among them, is far below what is allowed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import ceil

from tools.errors import MachineError
from tools.evaluation.supervisor.checking.carriers import NONE
from tools.evaluation.supervisor.checking.runner_client import RunError, RunnerClient
from tools.evaluation.supervisor.timed.baseline_client import BaselineProcess
from tools.evaluation.supervisor.timed.plausibility import allowance_us
from tools.evaluation.wire.chain_board import MAX_CALLS, ChainBoard, kept_calls, packed
from tools.evaluation.wire.channel import Load, Reply, State
from tools.evaluation.wire.patching import stand_ins
from tools.records import ABI, ITEM_BYTES, Verdict

_JITTER_US = 120.0
"""What the timekeeper's clock may be off by, at most; a chain has so many calls that all they are allowed together is as much."""
_LEAD_IN_TRIES = 3
_LEAST_S = 2.0
_PATIENCE = 50
"""A chain is waited for this many times as long as its events would take."""
_LEAST_US = 0.01


@dataclass
class Chains:
    """What the chains of a session showed, microseconds."""

    call_us: list[float] = field(default_factory=list)
    """Of a call, by the timekeeper's clock: each chain's time without its lead-ins, divided by its calls."""
    warm_us: list[float] = field(default_factory=list)
    """The same of chains that neither clear the L2 nor copy outputs: behind that something could hide."""
    tail_us: list[float] = field(default_factory=list)
    """From a chain's last call, as its caller's stream has it, to the end of all that was in flight."""
    calls: int = 0
    """In each chain."""
    held: bool = True
    """Whether the calls were issued before the gate opened; else their host waits for the device, and its time is in theirs."""
    judged: list[int] = field(default_factory=list)
    """Calls of the plan that were collected."""
    unable: bool = False
    """Whether there can be no chains here."""


def calls_in(event_us: float) -> int:
    """How many calls a chain has, for a kernel of that time."""
    return max(2, min(MAX_CALLS, ceil(_JITTER_US / allowance_us(event_us))))


class ChainSession:
    """The chains of one timed session."""

    def __init__(self, runner: RunnerClient, baseline: BaselineProcess, abi: ABI, chance: random.Random, event_us: float) -> None:
        """Begin with none; `event_us` is what a call takes by the runner's own events."""
        self._runner, self._baseline, self._abi, self._chance = runner, baseline, abi, chance
        self._event_us = event_us
        self._board = ChainBoard(baseline.board)
        self._item_bytes = [ITEM_BYTES[spec.dtype] for spec in abi.inputs]
        self._sequence = 0

    def measure(self, count: int, judged: list[int]) -> Chains:
        """Time `count` chains, and collect one call of each of the first ones as those of the plan that are to be `judged`."""
        chains = self._fitting()
        if chains.unable:
            return chains
        self._time(chains, chains.call_us, count, judged, Load(0) if chains.held else Load.OPEN)
        if chains.held:
            self._time(chains, chains.warm_us, count, [], Load.WARM)
        return chains

    def _time(self, chains: Chains, found: list[float], count: int, judged: list[int], load: Load) -> None:
        kind, lead_ins = (chains.calls, load), self._baseline.lead_ins
        lead_in_us = lead_ins.median_us(kind, lambda: self._lead_in_us(chains, load)) if chains.held else 0.0
        for turn in range(count):
            timed = self._chain(chains, judged[turn] if turn < len(judged) else None, load)
            chains.judged += judged[turn : turn + 1]
            if timed is None or (chains.held and timed.late):
                continue
            found.append(max(_LEAST_US, timed.event_us / chains.calls - lead_in_us))
            chains.tail_us.append(timed.host_us)

    def _fitting(self) -> Chains:
        """Find what this candidate allows: calls that wait for the device, or fill its queue, cannot be issued before the gate opens."""
        calls = calls_in(self._event_us)
        for chains in (Chains(calls=count) for count in sorted({calls, min(calls, 8), 2, 1}, reverse=True)):
            timed = self._chain(chains, None, Load(0))
            if timed is None:
                return Chains(unable=True)
            if not timed.late:
                return chains
        return Chains(calls=calls, held=False)

    def _chain(self, chains: Chains, judged: int | None, load: Load) -> Reply | None:
        """Have one made and timed; None where that cannot be done here."""
        last = chains.calls - self._chance.randrange(_taken(self._abi, chains.calls, load)) - 1
        changing = _changing(chains.calls, load)
        # inputs are copied as they were before the call that is kept: none of a chain whose calls are only looked at
        drawn = self._runner.draw_chain(self._chance, changing, NONE if judged is None else min(last, changing - 1))
        drawn += [[] for _ in range(chains.calls - changing)]
        self._sequence += 1
        self._baseline.values.bytes_at(0, self._baseline.values.size)[:] = 0
        values = packed(drawn, self._item_bytes)
        self._baseline.values.bytes_at(0, len(values)).data[:] = values
        self._board.lay(self._sequence, drawn)
        self._runner.begin_chain(load)
        timed = self._baseline.chain(Load(0), _LEAST_S + _PATIENCE * chains.calls * self._event_us / 1e6)
        is_able = self._runner.end_chain()
        if timed.state is State.UNABLE or not is_able:
            return None
        if timed.state is not State.DONE:
            raise RunError(Verdict.TIMED_OUT, "chained calls did not end in time", self._runner.log)
        if not load & Load.WARM:
            self._runner.collect(judged, number=last)
        return timed

    def _lead_in_us(self, chains: Chains, load: Load) -> float:
        """Time what stands around each call of such a chain."""
        changes = [stand_ins(self._abi.inputs)] * chains.calls
        for _ in range(_LEAD_IN_TRIES):
            self._sequence += 1
            self._board.lay(self._sequence, changes)
            timed = self._baseline.chain(load | Load.LEAD_IN, _LEAST_S)
            if timed.state is State.DONE and not timed.late:
                return timed.event_us / chains.calls - timed.host_us
        raise MachineError("The device did not end a chain of empty calls.", "Check the device with nvidia-smi.")


def _taken(abi: ABI, calls: int, load: Load) -> int:
    """Of how many of the last calls outputs are copied: one of them, nobody knows which, is judged."""
    return 1 if load & Load.OPEN else min(calls, kept_calls(abi))


def _changing(calls: int, load: Load) -> int:
    """Before how many of the calls inputs change: where the host waits its part in that would be in the calls' time."""
    return 1 if load & Load.OPEN else calls
