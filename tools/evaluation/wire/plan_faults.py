"""Why nobody should act on a launch plan: it comes from an untrusted process, and is read whole before anything is done with it."""

from __future__ import annotations

import binascii
import itertools
import struct
from collections.abc import Iterator, Sequence

from tools.evaluation.wire.launch_plan import POINTER, AnyStep, Argument, Choice, Fill, KernelLaunch, LaunchPlan, OutputPlace, pack, used
from tools.evaluation.wire.library_calls import LibraryCall, library_fault
from tools.evaluation.wire.tensor_maps import TensorMap
from tools.records import ABI, HardwareSheet, TensorSpec

MAX_STEPS = 2000
"""Launches of one call. What is issued later than the device asks for it is timed as the host is, in the candidate's own process too."""
MAX_PACKING = 100
MAX_WAYS = 64
"""Configurations of an autotuned launch."""
MAX_BUFFERS = 8000
MAX_CUBINS = 1000
MAX_ARGUMENTS = 256
MAX_CUBIN = 16 << 20
_MAX_GRID = (2**31 - 1, 65535, 65535)


def fault(plan: LaunchPlan, abi: ABI, sheet: HardwareSheet) -> str:
    """Say why nobody should act on a plan for `abi` on the device of `sheet`; empty where everything holds."""
    return next((reason for reason in _faults(plan, abi, sheet) if reason), "")


def _faults(plan: LaunchPlan, abi: ABI, sheet: HardwareSheet) -> Iterator[str]:
    if len(plan.buffers) > MAX_BUFFERS or len(plan.cubins) > MAX_CUBINS:
        yield "it has too many buffers or kernels"
    if len(plan.steps) > MAX_STEPS:
        yield f"it has {len(plan.steps)} launches; more than {MAX_STEPS} cannot be issued ahead of the device"
    if len(plan.packing) > MAX_PACKING:
        yield f"it packs its weights in {len(plan.packing)} launches; more than {MAX_PACKING} cannot be issued ahead of the device"
    if all(isinstance(step, Fill) for step in plan.steps):
        yield "it launches no kernel"
    if plan.nbytes > sheet.memory_gb * 1e9 / 2:
        yield "its buffers take more than half of the device's memory"
    specs = {"input": abi.inputs, "parameter": abi.parameters}
    for buffer in plan.buffers:
        known = specs.get(buffer.role)
        if known is not None and (buffer.index >= len(known) or known[buffer.index].nbytes != buffer.nbytes):
            yield f"its {buffer.role} {buffer.index} is not the ABI's"
    yield from (_code_fault(plan, index) for index in range(len(plan.cubins)))
    yield from (_kernel_fault(plan, step, sheet) for step in plan.launched if isinstance(step, KernelLaunch))
    roles = [("written" if _is_written(plan, place, abi) else buffer.role, buffer.nbytes) for place, buffer in enumerate(plan.buffers)]
    yield from (_call_fault(plan, step, roles) for step in plan.steps)
    yield from (_packing_fault(plan, step, roles) for step in plan.packing)
    yield from _graph_faults(plan)
    yield from _output_faults(plan, abi)
    # the last: it reads what the others have found whole
    yield from _order_faults(plan)


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


def _call_fault(plan: LaunchPlan, step: AnyStep, roles: Sequence[tuple[str, int]]) -> str:
    if isinstance(step, Choice):
        wrong = not 0 < len(step.ways) <= MAX_WAYS or any(not any(isinstance(one, KernelLaunch) for one in way) for way in step.ways)
        if wrong:
            return f"it chooses among {len(step.ways)} ways, or among some that launch nothing"
        return next((reason for way in step.ways for one in way if (reason := _call_fault(plan, one, roles))), "")
    if isinstance(step, Fill):
        return _fill_fault(plan, step, "made")
    return library_fault(step, roles, packs=False) if isinstance(step, LibraryCall) else ""


def _packing_fault(plan: LaunchPlan, step: AnyStep, roles: Sequence[tuple[str, int]]) -> str:
    """Weights are packed before any call: there is no input yet, and nothing that a call makes."""
    if isinstance(step, Choice):
        return "it packs weights by an autotuned kernel"
    if isinstance(step, Fill):
        return _fill_fault(plan, step, "packed")
    if isinstance(step, LibraryCall):
        return library_fault(step, roles, packs=True)
    early = any(plan.buffers[place].role in ("input", "made") for place in used(step))
    return f"{step.function} packs weights and is given what only a call has" if early else ""


def _fill_fault(plan: LaunchPlan, step: Fill, role: str) -> str:
    if not 0 <= step.buffer < len(plan.buffers) or plan.buffers[step.buffer].role != role:
        return "it fills what it has not made"
    whole = step.nbytes % step.width == 0 and step.offset % step.width == 0 and step.pattern < 1 << (8 * step.width)
    return "" if whole and step.offset + step.nbytes <= plan.buffers[step.buffer].nbytes else "it fills memory outside of its buffer"


def _graph_faults(plan: LaunchPlan) -> Iterator[str]:
    ends = [0, *(end for graph in plan.graphs for end in graph), len(plan.steps)]
    if ends != sorted(ends) or any(first == end for first, end in plan.graphs):
        yield "its graphs are no parts of it"


def _order_faults(plan: LaunchPlan) -> Iterator[str]:
    """What torch allots is there from its call on, until host code lets go of it."""
    allotted = plan.makers
    for place, step in enumerate(plan.steps):
        made = {view.buffer for view in step.makes} if isinstance(step, LibraryCall) else set()
        if any(allotted[buffer] != place for buffer in made):
            yield "it makes one buffer twice"
        for buffer in (buffer for buffer in used(step) if buffer in allotted and buffer not in made):
            if allotted[buffer] >= place or 0 <= plan.buffers[buffer].until <= place:
                yield "it reads what is not there yet, or not any more"
    if any(output.buffer in allotted and plan.buffers[output.buffer].until >= 0 for output in plan.outputs):
        yield "it lets go of an output"


def _output_faults(plan: LaunchPlan, abi: ABI) -> Iterator[str]:
    if len(plan.outputs) != len(abi.returned):
        yield f"it has {len(plan.outputs)} outputs, the ABI {len(abi.returned)}"
        return
    taken: list[tuple[OutputPlace, TensorSpec, int]] = []
    for place, spec in zip(plan.outputs, abi.returned, strict=True):
        written = _is_written(plan, place.buffer, abi)
        if not 0 <= place.buffer < len(plan.buffers) or not (written or plan.buffers[place.buffer].role == "made"):
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
        if not written:
            taken.append((place, spec, end))
    for (one, its_spec, its_end), (other, spec, end) in itertools.combinations(taken, 2):
        if one.buffer == other.buffer and one.offset < end and other.offset < its_end and not are_apart(one, its_spec, other, spec):
            yield "two outputs share memory"


def _is_written(plan: LaunchPlan, place: int, abi: ABI) -> bool:
    """Whether a buffer is an input, a parameter or a buffer of the module that the reference writes to."""
    if not 0 <= place < len(plan.buffers):
        return False
    buffer = plan.buffers[place]
    return buffer.index in {"input": abi.written_places, "parameter": abi.updated_places}.get(buffer.role, ())


def are_apart(one: OutputPlace, its_spec: TensorSpec, other: OutputPlace, spec: TensorSpec) -> bool:
    """Whether no element of two outputs in one buffer is the other's, as of parts of a row; False where that cannot be told.

    Positions are written by their strides, the largest first, as numbers by their digits. Views are apart where the ranges of a digit are.
    """
    if not its_spec.numel or not spec.numel:
        return True
    item = spec.nbytes // spec.numel
    if its_spec.nbytes // its_spec.numel != item:
        return False
    its_extents, extents = _extents(one, its_spec.shape), _extents(other, spec.shape)
    start = min(one.offset, other.offset)
    first, second = (one.offset - start) // item, (other.offset - start) // item
    for stride in sorted({1, *its_extents, *extents} - {0}, reverse=True):
        (digit, first), (its_digit, second) = divmod(first, stride), divmod(second, stride)
        rests = [
            rest + sum(smaller * (size - 1) for smaller, size in each.items() if smaller < stride)
            for rest, each in ((first, its_extents), (second, extents))
        ]
        if max(rests) >= stride:
            return False
        if digit + its_extents.get(stride, 1) <= its_digit or its_digit + extents.get(stride, 1) <= digit:
            return True
    return False


def _extents(place: OutputPlace, shape: Sequence[int]) -> dict[int, int]:
    """Count the steps of each stride in a view; two dimensions of one stride are as one that is longer."""
    found: dict[int, int] = {}
    for stride, size in zip(place.strides, shape, strict=True):
        if size > 1:
            found[stride] = found.get(stride, 1) + size - 1
    return found
