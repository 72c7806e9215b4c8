"""The board of chained calls: memory that the timekeeper, a candidate's runner and the device itself share.

A chain is several calls, each with changed inputs and a cleared L2, between two moments that are seen from outside of the candidate's
process. The timekeeper writes what changes and opens the gate; the device writes the flag when it has ended the last call.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tools.evaluation.wire.channel import MAX_PATCHES, Patch
from tools.evaluation.wire.memory import Memory
from tools.records import ABI

MAX_CALLS = 32
"""Calls of one chain, at most: all their launches must find room in the device's queue while the gate is shut."""
_PLACE = struct.Struct("<IIQ")
_COUNTS = 1024
_PLACES = 4096
_VALUES = _PLACES + MAX_CALLS * MAX_PATCHES * _PLACE.size
_ALIGNMENT = 16
_KEPT_BYTES = 1 << 28
VALUES_BYTES = 1 << 17
"""Room for eight bytes an element, each input's of each call aligned."""
BOARD_BYTES = _VALUES + VALUES_BYTES


class Word(IntEnum):
    """Where each number of the board lies, in a cache line of its own."""

    SEQUENCE = 0
    """Which chain this is, from 1 on: what the others are set to."""
    CALLS = 64
    """How many calls it has."""
    READY = 128
    """Set by the runner: the calls are issued behind the gate, or wait to be issued once it opens."""
    GATE = 192
    """Set by the timekeeper."""
    FLAG = 256
    """Set by the device, behind the last call on its caller's stream."""
    ENDED = 320
    """Set by the runner, when nothing is left in flight on any stream."""


class Change(NamedTuple):
    """The elements of one input that change before one call."""

    argument: int
    """Place among the inputs."""
    elements: tuple[int, ...]
    """Flat."""
    offset: int
    """Where their new values lie among the values, in bytes."""


class ChainBoard:
    """The board as every process sees it that maps its memory."""

    def __init__(self, memory: Memory) -> None:
        """View it in `memory` of at least `BOARD_BYTES`."""
        self.memory = memory
        self.values = memory.bytes_at(_VALUES, VALUES_BYTES)
        """The new values, behind one another; of use only once the gate is open."""
        self._words = {word: memory.bytes_at(word, 4).view(np.uint32) for word in Word}

    def get(self, word: Word) -> int:
        """Read a number."""
        return int(self._words[word][0])

    def set(self, word: Word, value: int) -> None:
        """Write a number."""
        self._words[word][0] = value

    def wipe(self) -> None:
        """Forget what an earlier candidate may have left."""
        self.memory.bytes_at(0, BOARD_BYTES)[:] = 0

    def lay(self, sequence: int, calls: Sequence[Sequence[Patch]]) -> None:
        """Announce a chain: which elements change before each of its calls, and not what they will be."""
        self.set(Word.SEQUENCE, sequence)
        self.set(Word.CALLS, len(calls))
        buffer = self.memory.bytes_at(0, _VALUES).data
        row = 0
        for index, patches in enumerate(calls):
            struct.pack_into("<I", buffer, _COUNTS + 4 * index, len(patches))
            for patch in patches:
                _PLACE.pack_into(buffer, _PLACES + row * _PLACE.size, patch.argument, 0, patch.element)
                row += 1

    def changes(self, item_bytes: Sequence[int]) -> list[list[Change]]:
        """Read which elements change, call by call; `item_bytes` by input."""
        buffer = self.memory.bytes_at(0, _VALUES).data
        places, row = [], 0
        for index in range(min(self.get(Word.CALLS), MAX_CALLS)):
            count = min(struct.unpack_from("<I", buffer, _COUNTS + 4 * index)[0], MAX_PATCHES)
            rows = (_PLACE.unpack_from(buffer, _PLACES + (row + each) * _PLACE.size) for each in range(count))
            places.append([(argument, element) for argument, _, element in rows])
            row += count
        return layout(places, item_bytes)


def kept_calls(abi: ABI) -> int:
    """How many of a chain's last calls keep their outputs until it has ended: one of them will be judged."""
    return max(1, min(MAX_CALLS, _KEPT_BYTES // max(1, sum(spec.nbytes for spec in abi.outputs))))


def layout(calls: Sequence[Sequence[tuple[int, int]]], item_bytes: Sequence[int]) -> list[list[Change]]:
    """Lay out where the new values of each call's changed (input, element) lie: by input, in order, aligned."""
    found, offset = [], 0
    for places in calls:
        changes = []
        for argument in dict.fromkeys(argument for argument, _ in places):
            elements = tuple(element for other, element in places if other == argument)
            changes.append(Change(argument, elements, offset))
            offset += -(-len(elements) * item_bytes[argument] // _ALIGNMENT) * _ALIGNMENT
        found.append(changes)
    return found


def packed(calls: Sequence[Sequence[Patch]], item_bytes: Sequence[int]) -> bytes:
    """Write the new values as `layout` says."""
    values = bytearray(VALUES_BYTES)
    changes = layout([[(patch.argument, patch.element) for patch in patches] for patches in calls], item_bytes)
    for patches, call in zip(calls, changes, strict=True):
        for change in call:
            size = item_bytes[change.argument]
            joined = b"".join(patch.value[:size] for patch in patches if patch.argument == change.argument)
            values[change.offset : change.offset + len(joined)] = joined
    return bytes(values)
