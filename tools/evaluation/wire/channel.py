"""What the supervisor and a runner say to each other: fixed-size messages, and bytes whose size the ABI fixes."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from enum import IntEnum, IntFlag
from typing import NamedTuple

from tools.evaluation.wire.memory import Block, Memory
from tools.evaluation.wire.red_zones import ZONE_BYTES
from tools.records import ABI, ITEM_BYTES, TensorSpec

DTYPES = tuple(ITEM_BYTES)
"""An output's dtype crosses the border as its place in this list."""
MAX_OUTPUTS = 32
MAX_DIMENSIONS = 8
MAX_HEARD = 64
"""Kernels and operators that a runner names, at most."""
MAX_STRUCTURE = 4096
"""Characters that say how outputs lie in what a call returned, at most: more than any ABI has."""
MAX_PATCHES = 256
"""Elements of the inputs that change between two timed calls, at most."""

_COMMAND = struct.Struct("<IIII")
_REPLY = struct.Struct("<IIddQ32x")
_SHAPE = struct.Struct("<iiii8q")
_PATCH = struct.Struct("<IIQ8s")
_HEARD = struct.Struct("<BB126s")
_UNKNOWN = len(DTYPES)


class Order(IntEnum):
    """What the supervisor tells a runner to do."""

    CALL = 1
    COLLECT = 2
    """Put the outputs where the supervisor finds them: of the last call, or of one of the last chain's."""
    STOP = 3
    COMPILE = 5
    """For the baseline only: compile the reference, and launch nothing of what was compiled."""
    PACK = 6
    """Pack the weights once more, primed, and say how long that took."""
    CHAIN = 7
    """Make the calls that are laid out on the board. The timekeeper opens the gate for them and holds the clock."""
    RELEASE = 8
    """For the baseline only: give back the device's memory that is kept for the next call."""


class Load(IntFlag):
    """How the inputs of a call arrive, and what the memory around it was filled with."""

    ALL = 1
    PATCHES = 2
    POISON_B = 4
    COMPILED = 8
    """For the baseline only: run the compiled reference."""
    PRIMED = 16
    """Keep the device busy until the host has issued the call, so that its events hold device time and no waiting for the host."""
    SHIFTED = 128
    """Inputs begin one element later in memory than the allocator would have them; with `ALL` only."""
    AUDIT = 64
    """One more call, not judged: listen to what runs in it and write that down."""
    UNPOISONED = 32
    """Leave memory as it is: a test has switched poison off."""
    TUNED = 32
    """For the baseline only: run the reference compiled with max-autotune."""
    OPEN = 256
    """Begin a chain's calls when the gate opens: they cannot be issued before, since the host waits for the device in them."""
    LEAD_IN = 512
    """For the timekeeper only: time a chain of its own, of what stands around every call."""
    WARM = 2048
    """Do not clear the L2 between a chain's calls: nothing can hide behind the clearing."""
    LATE = 1024
    """Leave outputs where they are until they are collected: a test has switched the copy behind the call off."""


class State(IntEnum):
    """What a runner answers."""

    READY = 1
    DONE = 2
    COLLECTED = 3
    FAILED = 4
    STRAYED = 5
    """The call has left another stream or device current."""
    UNABLE = 6
    """Here no chain can be made."""


class Command(NamedTuple):
    """An order with its particulars."""

    order: Order
    load: Load = Load(0)
    number: int = 0
    """Of changed elements, for a call; of the call in its chain, to be collected; of milliseconds to wait for a chain's end."""

    def pack(self) -> bytes:
        """Write the message."""
        return _COMMAND.pack(self.order, self.load, self.number, 0)

    @classmethod
    def unpack(cls, data: bytes) -> Command:
        """Read the message."""
        order, load, number, _ = _COMMAND.unpack(data)
        return cls(Order(order), Load(load), number)


class Reply(NamedTuple):
    """A runner's answer, whose times are hints, or the timekeeper's."""

    state: State
    event_us: float = 0.0
    host_us: float = 0.0
    late: bool = False
    """Outputs changed after the call had returned; of a chain, that it was not issued before the gate opened."""

    def pack(self) -> bytes:
        """Write the message."""
        return _REPLY.pack(self.state, self.late, self.event_us, self.host_us, 0)

    @classmethod
    def unpack(cls, data: bytes) -> Reply | None:
        """Read the message; None where it is none, or where a time in it is no time."""
        if len(data) != _REPLY.size:
            return None
        state, late, event_us, host_us, _ = _REPLY.unpack(data)
        sound = state in set(State) and all(math.isfinite(time) and time >= 0 for time in (event_us, host_us))
        return cls(State(state), event_us, host_us, bool(late)) if sound else None


REPLY_BYTES = _REPLY.size


class OutputShape(NamedTuple):
    """What a runner says one output was."""

    dtype: str
    shape: tuple[int, ...]
    dense: bool
    """Every element has a place of its own in memory."""

    def mismatch(self, spec: TensorSpec) -> str | None:
        """Say how it differs from the ABI, or None."""
        if self.shape != spec.shape:
            return f"{spec.name} has shape {list(self.shape)}, the ABI says {list(spec.shape)}"
        if self.dtype != spec.dtype:
            return f"{spec.name} is {self.dtype}, the ABI says {spec.dtype}"
        if not self.dense:
            return f"{spec.name} repeats the same memory for several elements"
        return None


class Patch(NamedTuple):
    """One changed element of an input."""

    argument: int
    """Place among the inputs."""
    element: int
    """Flat."""
    value: bytes


class Exchange:
    """The memory a runner shares with the supervisor: report, patches, structure, inputs (as a call left them), outputs, red zones.

    Large tensors lie beside it, in memory of their own that the runner shares with the oracle server: parameters, inputs and outputs.
    """

    def __init__(self, abi: ABI, *, beside: bool = False) -> None:
        """Lay it out for `abi`, the tensors `beside` it or in it."""
        self._shapes = 16
        self._patches = self._shapes + MAX_OUTPUTS * _SHAPE.size
        self._structure = self._patches + MAX_PATCHES * _PATCH.size
        start = -(-(self._structure + 8 + MAX_STRUCTURE) // 4096) * 4096
        self.parameters = Block(abi.parameters if beside else ())
        """Where there is other memory for the tensors; else a runner is given parameters in memory of their own."""
        self.inputs = Block(abi.inputs, self.parameters.end if beside else start)
        self.outputs = Block(abi.outputs, self.inputs.end)
        self._poisoned = (start, start) if beside else (self.outputs.start, self.outputs.end)
        self._heard = start if beside else self.outputs.end
        zones = -(-(self._heard + 16 + MAX_HEARD * _HEARD.size) // 4096) * 4096
        self.zones = Block([TensorSpec(name=spec.name, shape=(2 * ZONE_BYTES,), dtype="uint8") for spec in abi.inputs], zones)
        self.size = self.zones.end

    def wipe(self, memory: Memory) -> None:
        """Forget what an earlier runner left, to the last byte: the next may look before it is given anything, and outputs are poisoned."""
        start, end = self._poisoned
        memory.bytes_at(0, start)[:] = 0
        memory.bytes_at(end, memory.size - end)[:] = 0

    def write_shapes(self, memory: Memory, outputs: list[OutputShape]) -> None:
        """Put down what the outputs of a call were."""
        buffer = memory.bytes_at(0, self._patches).data
        struct.pack_into("<Q", buffer, 0, len(outputs))
        for index, output in enumerate(outputs[:MAX_OUTPUTS]):
            dtype = DTYPES.index(output.dtype) if output.dtype in DTYPES else _UNKNOWN
            sizes = (*output.shape, *(0,) * MAX_DIMENSIONS)[:MAX_DIMENSIONS]
            _SHAPE.pack_into(buffer, self._shapes + index * _SHAPE.size, dtype, len(output.shape), output.dense, 0, *sizes)

    def read_shapes(self, memory: Memory) -> list[OutputShape]:
        """Read what the outputs of a call were; whatever bytes are there give an answer."""
        buffer = memory.bytes_at(0, self._patches).data
        count = min(struct.unpack_from("<Q", buffer, 0)[0], MAX_OUTPUTS)
        found = []
        for index in range(count):
            dtype, rank, dense, _, *sizes = _SHAPE.unpack_from(buffer, self._shapes + index * _SHAPE.size)
            name = DTYPES[dtype] if 0 <= dtype < _UNKNOWN else "of another dtype"
            found.append(OutputShape(name, tuple(sizes[: max(0, min(rank, MAX_DIMENSIONS))]), bool(dense)))
        return found

    def write_structure(self, memory: Memory, structure: str) -> None:
        """Put down how the outputs of a call lie in what it returned, cut to what fits."""
        data = structure.encode("ascii", "replace")[:MAX_STRUCTURE]
        struct.pack_into(f"<Q{len(data)}s", memory.bytes_at(self._structure, 8 + MAX_STRUCTURE).data, 0, len(data), data)

    def read_structure(self, memory: Memory) -> str:
        """Read it: to be compared and shown, never parsed; whatever bytes are there give printable characters."""
        buffer = memory.bytes_at(self._structure, 8 + MAX_STRUCTURE).data
        count = min(struct.unpack_from("<Q", buffer, 0)[0], MAX_STRUCTURE)
        return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in bytes(buffer[8 : 8 + count]))

    def write_heard(self, memory: Memory, heard: list[tuple[str, str]]) -> None:
        """Name what ran in a call: (kind, name), cut to what fits."""
        buffer = memory.bytes_at(self._heard, 16 + MAX_HEARD * _HEARD.size).data
        struct.pack_into("<Q", buffer, 0, min(len(heard), MAX_HEARD))
        for index, (kind, name) in enumerate(heard[:MAX_HEARD]):
            data = name.encode("utf-8", "replace")[:126]
            _HEARD.pack_into(buffer, 16 + index * _HEARD.size, kind != "library", len(data), data)

    def read_heard(self, memory: Memory) -> list[tuple[str, str]]:
        """Read what ran in a call; whatever bytes are there give an answer."""
        buffer = memory.bytes_at(self._heard, 16 + MAX_HEARD * _HEARD.size).data
        count = min(struct.unpack_from("<Q", buffer, 0)[0], MAX_HEARD)
        rows = (_HEARD.unpack_from(buffer, 16 + index * _HEARD.size) for index in range(count))
        return [("triton" if own else "library", data[: min(length, 126)].decode("utf-8", "replace")) for own, length, data in rows]

    def write_patches(self, memory: Memory, patches: Iterable[Patch]) -> None:
        """Name the changed elements and what they are now."""
        buffer = memory.bytes_at(0, self._patches + MAX_PATCHES * _PATCH.size).data
        for index, (argument, element, value) in enumerate(patches):
            _PATCH.pack_into(buffer, self._patches + index * _PATCH.size, argument, 0, element, value)

    def read_patches(self, memory: Memory, count: int) -> list[Patch]:
        """Read which elements changed, each value followed by nothing up to eight bytes."""
        buffer = memory.bytes_at(0, self._patches + MAX_PATCHES * _PATCH.size).data
        rows = (_PATCH.unpack_from(buffer, self._patches + index * _PATCH.size) for index in range(count))
        return [Patch(argument, element, value) for argument, _, element, value in rows]


def fill_pattern(poison_b: bool) -> int:
    """Byte that outputs are filled with before a call: NaN in every float format, or a large finite value."""
    return 0x7F if poison_b else 0xFF
