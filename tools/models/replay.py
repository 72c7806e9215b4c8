"""Calls as CUDA graphs, as models are served: what launches cost the host is paid once, and what is left is the device's time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from tools.models.copies import holds_objects
from tools.models.found import Found
from tools.models.loading import Workload
from tools.models.records import Capture

REPLAYED = "replayed CUDA graphs, in which the host does not take time"
WARM = 3
"""Runs before a call is recorded: libraries choose algorithms and kernels are loaded in them."""
TIMED = 5
FLUSHED = 1 << 28
"""Bytes written before each timed replay, more than any cache holds: in a model other modules' tensors lie there."""

Replay = Callable[[], Any]
"""Runs a recorded call again and gives its results, which lie in the same place each time."""
Record = Callable[[Callable[[], Any]], Replay]
Clock = Callable[[Replay], float]


class NotRecordedError(Exception):
    """A call that is of no use as a CUDA graph; the text says why, as a clause."""


def recorder() -> Record:
    """Give what records calls; their graphs share memory, so that results hold until another one of them is replayed."""
    device: Any = torch.cuda
    pool = device.graph_pool_handle()
    held: list[Any] = []

    def record(call: Callable[[], Any]) -> Replay:
        numbers = device.get_rng_state()
        stream = device.Stream()
        stream.wait_stream(device.current_stream())
        graph = device.CUDAGraph()
        try:
            with device.stream(stream):
                _without_waiting(call)
                for _ in range(WARM):
                    call()
            device.current_stream().wait_stream(stream)
            if not held:
                # memory whose graphs are all gone, and of which results are still there, takes no further graph
                held.append(device.CUDAGraph())
                with device.graph(held[0], pool=pool):
                    held.append(torch.zeros(1, device="cuda"))
            with device.graph(graph, pool=pool):
                result = call()
        except Exception as error:
            _forget_capture(numbers)
            raise NotRecordedError(f"{type(error).__name__}: {' '.join(str(error).split())[:160]}") from error

        def replay() -> Any:
            graph.replay()
            return result

        return replay

    return record


def _without_waiting(call: Callable[[], Any]) -> None:
    """Run a call that may not wait for the device: a graph cannot, and one that fails while it is recorded leaves more behind."""
    device: Any = torch.cuda
    before = device.get_sync_debug_mode()
    device.set_sync_debug_mode("error")
    try:
        call()
    finally:
        device.set_sync_debug_mode(before)


def _forget_capture(numbers: torch.Tensor) -> None:
    """Have random numbers drawn again after a recording failed: their generator would wait for its end."""
    device: Any = torch.cuda
    device.synchronize()
    own: Any = device.default_generators[device.current_device()]
    new: Any = torch.Generator(device="cuda")
    own.graphsafe_set_state(new.graphsafe_get_state())
    device.set_rng_state(numbers)


def time_replay(replay: Replay) -> float:
    """Time replays on the device, nothing of theirs in its caches: the fastest of a few, microseconds."""
    device: Any = torch.cuda
    flush = torch.empty(FLUSHED, dtype=torch.int8, device="cuda")
    times = []
    for _ in range(TIMED):
        flush.zero_()
        begun, ended = device.Event(enable_timing=True), device.Event(enable_timing=True)
        begun.record()
        replay()
        ended.record()
        ended.synchronize()
        times.append(begun.elapsed_time(ended) * 1e3)
    return float(min(times))


def by_device(
    found: Capture,
    model: nn.Module,
    workloads: Sequence[Workload],
    sources: Mapping[str, Sequence[Found]],
    record: Record,
    clocked: Clock = time_replay,
) -> Capture:
    """Have modules count by what they take in CUDA graphs, where these hold the model and are faster: there the host takes no time.

    `sources`: of each group the calls that it stands for.
    """
    with torch.no_grad():
        try:
            us = _whole_times(model, workloads, found.us, record, clocked)
        except NotRecordedError as error:
            return found.model_copy(update={"clock": f"{found.clock}, not CUDA graphs ({error})"})
        weights = found.weights
        eager, whole = (sum(weights[name] * times[name] for name in us) for times in (found.us, us))
        watched = sum(one.weighted(weights) for calls in sources.values() for one in calls if "" in one.paths)
        groups = []
        for group in found.groups:
            before = sum(one.weighted(weights) for one in sources[group.name])
            after = sum(_retimed(one, weights, us, whole / eager, record, clocked) for one in sources[group.name])
            scale = after / before if before else 1.0
            groups.append(group.model_copy(update={"us": group.us * scale, "share": group.share * scale * watched / whole}))
    ordered = tuple(sorted(groups, key=lambda group: -group.share))
    return found.model_copy(update={"clock": REPLAYED, "us": us, "eager_us": found.us, "groups": ordered})


def _whole_times(
    model: nn.Module, workloads: Sequence[Workload], eager: Mapping[str, float], record: Record, clocked: Clock
) -> dict[str, float]:
    """Time workloads as CUDA graphs, microseconds; NotRecordedError where these cannot hold the model, or are no faster than `eager`."""
    if any(holds_objects((one.args, one.kwargs)) for one in workloads):
        raise NotRecordedError("it is given an object, such as a cache that grows")
    us = {one.name: clocked(record(partial(one.called, model))) for one in workloads}
    if sum(one.weight * us[one.name] for one in workloads) >= sum(one.weight * eager[one.name] for one in workloads):
        raise NotRecordedError("the device is busy all the time")
    return us


def _retimed(found: Found, weights: Mapping[str, float], whole: Mapping[str, float], part: float, record: Record, clocked: Clock) -> float:
    """Give the microseconds of equal calls, by the workloads' weights, if each takes what a replay of one takes.

    The model itself takes what its workloads do, `whole`; a call that cannot be recorded by itself the same `part` as the model.
    """
    if "" in found.paths:
        return sum(weights[name] * whole[name] * count for name, count in found.calls.items())
    try:
        return found.weight(weights) * clocked(record(found.call))
    except NotRecordedError:
        return found.weighted(weights) * part
