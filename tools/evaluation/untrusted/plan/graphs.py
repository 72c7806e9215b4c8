"""What a CUDA graph captured while its host code was followed, and how a call that replays it says so in its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.evaluation.untrusted.plan.buffers import PlanBuffers
from tools.evaluation.wire.launch_plan import POINTER, AnyStep, Argument, Choice, Fill, KernelLaunch
from tools.evaluation.wire.library_calls import LibraryCall, Value, View
from tools.evaluation.wire.tensor_maps import TensorMap


@dataclass(frozen=True)
class Captured:
    """One graph: what it does on the buffers of the call that captured it."""

    steps: tuple[AnyStep, ...]
    buffers: PlanBuffers
    cubins: tuple[bytes, ...]
    reason: str
    """Why what it does has no place in a plan; empty where it has."""
    several_streams: bool


def moved(step: AnyStep, buffer: Callable[[int], int], cubin: Callable[[int], int]) -> AnyStep:
    """Give a step on other buffers and kernels, of which `buffer` and `cubin` say where they are now."""
    if isinstance(step, Choice):
        return Choice(ways=tuple(tuple(_moved(one, buffer, cubin) for one in way) for way in step.ways))
    if isinstance(step, LibraryCall):
        named = tuple((key, _value(value, buffer)) for key, value in step.named)
        arguments = tuple(_value(value, buffer) for value in step.arguments)
        results = tuple(None if view is None else _view(view, buffer) for view in step.results)
        return step.model_copy(update={"arguments": arguments, "named": named, "results": results})
    return _moved(step, buffer, cubin)


def _moved(step: KernelLaunch | Fill, buffer: Callable[[int], int], cubin: Callable[[int], int]) -> KernelLaunch | Fill:
    if isinstance(step, Fill):
        return step.model_copy(update={"buffer": buffer(step.buffer)})
    arguments = tuple(_argument(argument, buffer) for argument in step.arguments)
    return step.model_copy(update={"cubin": cubin(step.cubin), "arguments": arguments})


def _argument(argument: Argument | TensorMap, buffer: Callable[[int], int]) -> Argument | TensorMap:
    if isinstance(argument, Argument) and (argument.type != POINTER or argument.buffer < 0):
        return argument
    return argument.model_copy(update={"buffer": buffer(argument.buffer)})


def _value(value: Value, buffer: Callable[[int], int]) -> Value:
    if isinstance(value, View):
        return _view(value, buffer)
    if isinstance(value, tuple) and any(isinstance(one, View) for one in value):
        return tuple(_view(one, buffer) if isinstance(one, View) else None for one in value)
    return value


def _view(view: View, buffer: Callable[[int], int]) -> View:
    return view.model_copy(update={"buffer": buffer(view.buffer)})
