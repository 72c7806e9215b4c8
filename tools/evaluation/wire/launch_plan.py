"""A launch plan: what a candidate's call does on the device and nothing else, so that a process without the candidate's code can do it.

It comes from an untrusted process, so `plan_faults` reads it before anybody acts on it. What it describes is judged like any
candidate: a plan that computes something else is wrong, whoever made it.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from tools.evaluation.wire.library_calls import LibraryCall, View
from tools.evaluation.wire.tensor_maps import TensorMap
from tools.records import Record

SCALARS = {
    "i1": "b",
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "u1": "B",
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "fp32": "f",
    "f32": "f",
    "fp64": "d",
}
"""Triton's scalar types, and how `struct` writes them as the kernel takes them."""
BASES = (0, 16)
"""Where parameters begin in a constant bank, modulo the alignment of a tensor map: 0x380 on compute capability 10.0, 0x210 on 9.0."""
_LAUNCH_US, _CALL_US, _HEAD_START_US = 5.0, 20.0, 700.0
"""What issuing a launch and a call of torch takes the host, at most on the machines that were seen, and less than a primed call's lead."""
POINTER = "pointer"
_POINTER_BYTES = 8


class Buffer(Record):
    """One allocation; nothing of one lies in another."""

    role: Literal["input", "parameter", "packed", "made"]
    """`packed`: by the step that packs weights, for calls to read; `made`: by the call itself, with no contents of its own."""
    index: int = Field(default=0, ge=0)
    """Of the input or parameter, in the ABI's order."""
    nbytes: int = Field(ge=0)
    until: int = -1
    """Of the call's steps that one before which host code has let go of it; -1: it holds it to the end. Counts where torch allots it."""


class Argument(Record):
    """One parameter of a kernel: a place in a buffer, a null pointer (`buffer` is -1), or a scalar."""

    type: str
    """`pointer`, or a key of `SCALARS`."""
    buffer: int = -1
    offset: int = 0
    """Bytes into the buffer."""
    value: int | float = 0

    @property
    def nbytes(self) -> int:
        """Its size as the kernel takes it."""
        return _POINTER_BYTES if self.type == POINTER else struct.calcsize(SCALARS[self.type])

    @property
    def alignment(self) -> int:
        """Of its place among the parameters: its own size."""
        return self.nbytes


class KernelLaunch(Record):
    """One launch of a compiled kernel."""

    kind: Literal["kernel"] = "kernel"
    cubin: int
    """Place in the plan's `cubins`."""
    function: str = Field(max_length=1000)
    grid: tuple[int, int, int]
    """Blocks, or clusters where `cluster` is above 1."""
    threads: int
    shared_bytes: int = Field(ge=0)
    cluster: int = 1
    """Blocks of a cluster, in the first dimension."""
    cooperative: bool = False
    overlapping: bool = False
    """Programmatic dependent launch: it may begin before the one ahead of it has ended."""
    arguments: tuple[Argument | TensorMap, ...]


class Fill(Record):
    """One constant written over a contiguous part of a buffer."""

    kind: Literal["fill"] = "fill"
    buffer: int
    offset: int = Field(ge=0)
    nbytes: int = Field(ge=0)
    width: Literal[1, 2, 4]
    """Bytes of the pattern."""
    pattern: int = Field(ge=0)


class OutputPlace(Record):
    """Where one output lies when the call has ended; shape and dtype are the ABI's."""

    buffer: int
    offset: int = Field(ge=0)
    """Bytes into the buffer."""
    strides: tuple[int, ...]
    """In elements."""


Step: TypeAlias = KernelLaunch | Fill | LibraryCall


class Choice(Record):
    """An autotuned launch: the same by several configurations, of which the fastest on the device is taken."""

    kind: Literal["choice"] = "choice"
    ways: tuple[tuple[KernelLaunch | Fill, ...], ...]
    """Of each configuration what it launches, and what it writes before that."""


AnyStep: TypeAlias = Annotated[KernelLaunch | Fill | LibraryCall | Choice, Field(discriminator="kind")]


class LaunchPlan(Record):
    """Everything that one call of a candidate does, at the problem's own sizes."""

    buffers: tuple[Buffer, ...]
    packing: tuple[AnyStep, ...] = ()
    """What the step that packs weights does, before any call."""
    steps: tuple[AnyStep, ...]
    outputs: tuple[OutputPlace, ...]
    cubins: tuple[str, ...]
    """Machine code, base64."""
    several_streams: bool = False
    """Host code put work on streams of its own choice: what a plan does one after the other may have run side by side."""
    graphs: tuple[tuple[int, int], ...] = ()
    """Steps that the candidate replays as one CUDA graph, from the first to before the second; so does whoever runs the plan."""

    def code(self, cubin: int) -> bytes:
        """Machine code of one kernel."""
        return base64.b64decode(self.cubins[cubin], validate=True)

    @property
    def launched(self) -> Iterator[Step]:
        """Everything in it, of a choice all ways."""
        for step in (*self.packing, *self.steps):
            yield from (one for way in step.ways for one in way) if isinstance(step, Choice) else (step,)

    @property
    def tuned(self) -> bool:
        """Whether some launch is chosen on the device."""
        return any(isinstance(step, Choice) for step in self.steps)

    @property
    def crowded(self) -> bool:
        """Whether its launches take the host longer than its head start: they are captured as one graph, so that the host is not timed."""
        spent = sum(_CALL_US if isinstance(step, LibraryCall) else _LAUNCH_US for step in self.steps)
        return not self.graphs and spent > _HEAD_START_US

    @property
    def captured(self) -> tuple[tuple[int, int], ...]:
        """Steps that are replayed as graphs."""
        return ((0, len(self.steps)),) if self.crowded else self.graphs

    @property
    def allotted(self) -> dict[int, View]:
        """Buffers of the call that torch allots while it runs, and how each lies."""
        return {view.buffer: view for step in self.steps if isinstance(step, LibraryCall) for view in step.makes}

    @property
    def makers(self) -> dict[int, int]:
        """Which step makes each of them."""
        return {view.buffer: place for place, step in enumerate(self.steps) if isinstance(step, LibraryCall) for view in step.makes}

    @property
    def nbytes(self) -> int:
        """Memory of all buffers."""
        return sum(buffer.nbytes for buffer in self.buffers)

    @property
    def packed_nbytes(self) -> int:
        """Memory that the step that packs weights fills."""
        return sum(buffer.nbytes for buffer in self.buffers if buffer.role == "packed")


def used(step: AnyStep, *, made: bool = True) -> Iterator[int]:
    """Buffers that a step reads or writes; unless `made`, without those that torch makes in it."""
    if isinstance(step, Choice):
        yield from (buffer for way in step.ways for one in way for buffer in used(one))
    elif isinstance(step, KernelLaunch):
        yield from (a.buffer for a in step.arguments if isinstance(a, TensorMap) or (a.type == POINTER and a.buffer >= 0))
    elif isinstance(step, Fill):
        yield step.buffer
    else:
        yield from (view.buffer for view in (*step.views, *step.written, *(step.makes if made else ())))


def layout(arguments: tuple[Argument | TensorMap, ...], base: int = 0) -> list[tuple[int, int]]:
    """Offset and size of each argument in a kernel's parameter space, which begins at `base`, each aligned as it asks for."""
    places, end = [], base
    for argument in arguments:
        start = -(-end // argument.alignment) * argument.alignment
        places.append((start - base, argument.nbytes))
        end = start + argument.nbytes
    return places


def pack(argument: Argument, addresses: tuple[int, ...]) -> bytes:
    """Write an argument as the kernel takes it, the buffers being at `addresses`."""
    if argument.type == POINTER:
        return struct.pack("=Q", addresses[argument.buffer] + argument.offset if argument.buffer >= 0 else 0)
    return struct.pack("=" + SCALARS[argument.type], argument.value)
