"""A launch plan: what a candidate's call does on the device and nothing else, so that a process without the candidate's code can do it.

It comes from an untrusted process, so `fault` reads it before anybody acts on it. What it describes is judged like any
candidate: a plan that computes something else is wrong, whoever made it.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import struct
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from tools.evaluation.wire.library_calls import LibraryCall, library_fault
from tools.evaluation.wire.tensor_maps import TensorMap
from tools.records import ABI, HardwareSheet, Record

MAX_STEPS = 100
"""More launches could not be issued within the head start of a primed call: the host would be timed."""
MAX_BUFFERS = 256
MAX_ARGUMENTS = 256
MAX_CUBIN = 16 << 20
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
POINTER = "pointer"
_POINTER_BYTES = 8
_MAX_GRID = (2**31 - 1, 65535, 65535)


class Buffer(Record):
    """One allocation; nothing of one lies in another."""

    role: Literal["input", "parameter", "packed", "made"]
    """`packed`: by the step that packs weights, for calls to read; `made`: by the call itself, with no contents of its own."""
    index: int = Field(default=0, ge=0)
    """Of the input or parameter, in the ABI's order."""
    nbytes: int = Field(ge=0)


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


class LaunchPlan(Record):
    """Everything that one call of a candidate does, at the problem's own sizes."""

    buffers: tuple[Buffer, ...]
    packing: tuple[KernelLaunch | Fill | LibraryCall, ...] = ()
    """What the step that packs weights does, before any call: some of torch's operators, too."""
    steps: tuple[KernelLaunch | Fill, ...]
    outputs: tuple[OutputPlace, ...]
    cubins: tuple[str, ...]
    """Machine code, base64."""
    several_streams: bool = False
    """Host code put work on streams of its own choice: what a plan does one after the other may have run side by side."""

    def code(self, cubin: int) -> bytes:
        """Machine code of one kernel."""
        return base64.b64decode(self.cubins[cubin], validate=True)

    @property
    def nbytes(self) -> int:
        """Memory of all buffers."""
        return sum(buffer.nbytes for buffer in self.buffers)

    @property
    def packed_nbytes(self) -> int:
        """Memory that the step that packs weights fills."""
        return sum(buffer.nbytes for buffer in self.buffers if buffer.role == "packed")


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


def fault(plan: LaunchPlan, abi: ABI, sheet: HardwareSheet) -> str:
    """Say why nobody should act on a plan for `abi` on the device of `sheet`; empty where everything holds."""
    return next((reason for reason in _faults(plan, abi, sheet) if reason), "")


def _faults(plan: LaunchPlan, abi: ABI, sheet: HardwareSheet) -> Iterator[str]:
    if len(plan.buffers) > MAX_BUFFERS or len(plan.cubins) > 2 * MAX_STEPS:
        yield "it has too many buffers or kernels"
    if len(plan.steps) > MAX_STEPS:
        yield f"it has {len(plan.steps)} launches; more than {MAX_STEPS} cannot be issued ahead of the device"
    if len(plan.packing) > MAX_STEPS:
        yield f"it packs its weights in {len(plan.packing)} launches; more than {MAX_STEPS} cannot be issued ahead of the device"
    if not any(isinstance(step, KernelLaunch) for step in plan.steps):
        yield "it launches no kernel"
    if plan.nbytes > sheet.memory_gb * 1e9 / 2:
        yield "its buffers take more than half of the device's memory"
    specs = {"input": abi.inputs, "parameter": abi.parameters}
    for buffer in plan.buffers:
        known = specs.get(buffer.role)
        if known is not None and (buffer.index >= len(known) or known[buffer.index].nbytes != buffer.nbytes):
            yield f"its {buffer.role} {buffer.index} is not the ABI's"
    yield from (_code_fault(plan, index) for index in range(len(plan.cubins)))
    for step in (*plan.packing, *plan.steps):
        if isinstance(step, KernelLaunch):
            yield _kernel_fault(plan, step, sheet)
    yield from (_fill_fault(plan, step, "made") for step in plan.steps if isinstance(step, Fill))
    yield from (_packing_fault(plan, step) for step in plan.packing)
    yield from _output_faults(plan, abi)


def _code_fault(plan: LaunchPlan, index: int) -> str:
    try:
        code = plan.code(index)
    except binascii.Error:
        return f"kernel {index} is no base64"
    return "" if code[:4] == b"\x7fELF" and len(code) <= MAX_CUBIN else f"kernel {index} is no machine code"


def _kernel_fault(plan: LaunchPlan, step: KernelLaunch, sheet: HardwareSheet) -> str:
    if not 0 <= step.cubin < len(plan.cubins):
        return f"{step.function} has no machine code"
    if not all(0 < size <= most for size, most in zip(step.grid, _MAX_GRID, strict=True)) or not 1 <= step.cluster <= 8:
        return f"{step.function} has a grid of {step.grid} in clusters of {step.cluster}"
    if not 0 < step.threads <= 1024 or step.shared_bytes > sheet.shared_kib_per_block * 1024:
        return f"{step.function} asks for {step.threads} threads and {step.shared_bytes} bytes of shared memory in each block"
    if len(step.arguments) > MAX_ARGUMENTS:
        return f"{step.function} has {len(step.arguments)} arguments"
    return next((reason for a in step.arguments if (reason := _argument_fault(plan, step, a))), "")


def _argument_fault(plan: LaunchPlan, step: KernelLaunch, argument: Argument | TensorMap) -> str:
    if isinstance(argument, TensorMap):
        inside = 0 <= argument.buffer < len(plan.buffers)
        reason = argument.fault(plan.buffers[argument.buffer].nbytes) if inside else "outside of its buffers"
        return f"{step.function} is given a tensor map {reason}" if reason else ""
    if argument.type == POINTER:
        null = argument.buffer == -1 and argument.offset == 0
        inside = 0 <= argument.buffer < len(plan.buffers) and 0 <= argument.offset <= plan.buffers[argument.buffer].nbytes
        return "" if null or inside else f"{step.function} is given a pointer outside of its buffers"
    try:
        pack(argument, ())
    except (struct.error, KeyError, OverflowError):
        return f"{step.function} is given {argument.value} as {argument.type}"
    return ""


def _packing_fault(plan: LaunchPlan, step: KernelLaunch | Fill | LibraryCall) -> str:
    """Weights are packed before any call: there is no input yet, and nothing that a call makes."""
    if isinstance(step, Fill):
        return _fill_fault(plan, step, "packed")
    if isinstance(step, LibraryCall):
        return library_fault(step, [(buffer.role, buffer.nbytes) for buffer in plan.buffers])
    places = (a.buffer for a in step.arguments if isinstance(a, TensorMap) or (a.type == POINTER and a.buffer >= 0))
    early = any(plan.buffers[place].role in ("input", "made") for place in places)
    return f"{step.function} packs weights and is given what only a call has" if early else ""


def _fill_fault(plan: LaunchPlan, step: Fill, role: str) -> str:
    if not 0 <= step.buffer < len(plan.buffers) or plan.buffers[step.buffer].role != role:
        return "it fills what it has not made"
    whole = step.nbytes % step.width == 0 and step.offset % step.width == 0 and step.pattern < 1 << (8 * step.width)
    return "" if whole and step.offset + step.nbytes <= plan.buffers[step.buffer].nbytes else "it fills memory outside of its buffer"


def _output_faults(plan: LaunchPlan, abi: ABI) -> Iterator[str]:
    if len(plan.outputs) != len(abi.outputs):
        yield f"it has {len(plan.outputs)} outputs, the ABI {len(abi.outputs)}"
        return
    taken: list[tuple[int, int, int]] = []
    for place, spec in zip(plan.outputs, abi.outputs, strict=True):
        if not 0 <= place.buffer < len(plan.buffers) or plan.buffers[place.buffer].role != "made":
            yield f"{spec.name} is not in memory that the call made"
            return
        item = spec.nbytes // max(spec.numel, 1)
        if len(place.strides) != len(spec.shape) or any(stride < 0 for stride in place.strides) or place.offset % max(item, 1):
            yield f"{spec.name} lies in an impossible way"
            return
        reach = sum(stride * (size - 1) for stride, size in zip(place.strides, spec.shape, strict=True)) + 1
        end = place.offset + (reach * item if spec.numel else 0)
        if end > plan.buffers[place.buffer].nbytes:
            yield f"{spec.name} reaches outside of its buffer"
        taken.append((place.buffer, place.offset, end))
    for one, other in itertools.combinations(taken, 2):
        if one[0] == other[0] and one[1] < other[2] and other[1] < one[2]:
            yield "two outputs share memory"
