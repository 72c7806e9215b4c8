"""Calls in a chain, issued where they run: behind a gate that the timekeeper opens, and before a flag that the device sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tools.evaluation.wire.chain_board import ChainBoard, Change, Word
from tools.evaluation.wire.channel import Load
from tools.evaluation.wire.lead_in import ColdCache, end_persistence
from tools.evaluation.wire.stream_gate import Gate, await_open
from tools.evaluation.wire.written import SHORT_BYTES, TINY_BYTES, Written, nothing_written
from tools.float8 import writable

if TYPE_CHECKING:
    import torch


class _Patch(NamedTuple):
    flats: tuple[torch.Tensor, ...]
    where: torch.Tensor
    values: torch.Tensor


class Caller(Protocol):
    """Who makes a chain's calls."""

    def call(self, number: int) -> object:
        """Make one, by its number in the chain."""

    def take(self, result: object, number: int) -> None:
        """Copy its outputs."""


def issue(
    board: ChainBoard,
    gate: Gate,
    inputs: Sequence[torch.Tensor],
    cold: ColdCache | None,
    caller: Caller,
    load: Load,
    written: Written | None = None,
) -> None:
    """Issue the calls that are laid out on the `board`.

    All of them are in the device's queue before the gate opens, unless the `load` says that it must be open: then the host waits for it.
    Between all steps stand fences, so that what runs on other streams adds to the chain's time: no more than the longest step can hide it.
    A warm chain has short steps alone. Where the gate is open there are the calls alone, one after the other, as their caller makes them.
    What was `written` to is put back before a call.
    """
    sequence = board.get(Word.SEQUENCE)
    sizes = [value.element_size() for value in inputs]
    written = written or nothing_written()
    calls = [[_patch(change, inputs, written, gate) for change in changes] for changes in board.changes(sizes)]
    settle(cold)
    if cold is not None:
        end_persistence()
    if load & Load.OPEN:
        board.set(Word.READY, sequence)
        await_open(board, sequence)
    else:
        gate.hold(sequence)
    gate.reveal()
    if load & Load.OPEN:
        _call_alone(calls, caller, written)
    else:
        _call_fenced(gate, calls, cold, caller, written, is_warm=bool(load & Load.WARM))
    gate.flag(sequence)
    if not load & Load.OPEN:
        board.set(Word.READY, sequence)


def _call_alone(calls: Sequence[Sequence[_Patch]], caller: Caller, written: Written) -> None:
    """Make the calls one after the other, inputs changed before the first alone, and copy the outputs of the last.

    What was written to is put back whole before that one; before others only where it is little, since it is in the calls' time.
    """
    _apply(calls[0])
    for number in range(len(calls)):
        written.put_back(TINY_BYTES if number < len(calls) - 1 else None)
        result = caller.call(number)
    caller.take(result, len(calls) - 1)


def _call_fenced(
    gate: Gate, calls: Sequence[Sequence[_Patch]], cold: ColdCache | None, caller: Caller, written: Written, *, is_warm: bool
) -> None:
    """Make the calls with a fence after each step; `is_warm`, nothing is cleared before and no output copied after one."""
    for number, patches in enumerate(calls):
        if written:
            written.put_back(SHORT_BYTES if is_warm else None)
            gate.fence()
        if cold is not None and not is_warm:
            cold.clear()
            gate.fence()
        for patch in patches:
            _apply([patch])
            gate.fence()
        result = caller.call(number)
        gate.fence()
        if not is_warm:
            caller.take(result, number)
        # what a call lets begin on another stream as it ends begins between two fences
        gate.fence()


def _apply(patches: Sequence[_Patch]) -> None:
    for flats, where, values in patches:
        for flat in flats:
            flat.index_copy_(0, where, values)


def settle(cold: ColdCache | None) -> None:
    """Wait until nothing is in flight on any stream; without a cache to clear there is no device."""
    import torch

    if cold is not None:
        torch.cuda.synchronize()


def _patch(change: Change, inputs: Sequence[torch.Tensor], written: Written, gate: Gate) -> _Patch:
    """Say where an input changes, and where its new values will be found."""
    import torch

    given = written.given
    tensors = [inputs[change.argument], *([given[change.argument]] if change.argument in given else [])]
    flat, *_ = flats = tuple(writable(value.view(-1)) for value in tensors)
    end = change.offset + len(change.elements) * flat.element_size()
    # a stand-in for an input may be shorter than what it stands for
    where = torch.tensor(change.elements, dtype=torch.int64, device=flat.device) % flat.numel()
    return _Patch(flats, where, gate.values[change.offset : end].view(flat.dtype))
