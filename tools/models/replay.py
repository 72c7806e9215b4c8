"""Calls as CUDA graphs, as models are served: what launches cost the host is paid once, and what is left is the device's time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from tools.models.copies import holds_objects
from tools.models.found import Found
from tools.models.loading import Workload

WARM = 3
"""Runs before a call is recorded: libraries choose algorithms and kernels are loaded in them."""
TIMED = 5
FLUSHED = 1 << 28
"""Bytes written before each timed replay, more than any cache holds: in a model other modules' tensors lie there."""

Replay = Callable[[], Any]
"""Runs a recorded call again and gives its results, which lie in the same place each time."""
Record = Callable[[Callable[[], Any]], Replay]


class NotRecordedError(Exception):
    """A call that a CUDA graph cannot hold; the text says why."""


def recorder() -> Record:
    """Give what records calls; their graphs share memory, so that results hold until another one of them is replayed."""
    pool = torch.cuda.graph_pool_handle()

    def record(call: Callable[[], Any]) -> Replay:
        device: Any = torch.cuda
        stream = device.Stream()
        stream.wait_stream(device.current_stream())
        graph = device.CUDAGraph()
        try:
            with device.stream(stream):
                for _ in range(WARM):
                    call()
            device.current_stream().wait_stream(stream)
            with device.graph(graph, pool=pool):
                result = call()
        except Exception as error:
            device.synchronize()
            raise NotRecordedError(f"{type(error).__name__}: {' '.join(str(error).split())[:160]}") from error

        def replay() -> Any:
            graph.replay()
            return result

        return replay

    return record


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


def replayed_times(
    model: nn.Module,
    workloads: list[Workload],
    founds: list[Found],
    eager: Mapping[str, float],
    record: Record,
    clocked: Callable[[Replay], float] = time_replay,
) -> dict[str, float] | None:
    """Time workloads as CUDA graphs, and have every call of `founds` take what it takes in one; microseconds by workload.

    None where a graph cannot hold the model, or is no faster than `eager`: then its calls keep their times.
    """
    if any(holds_objects((one.args, one.kwargs)) for one in workloads):
        return None
    try:
        us = {one.name: clocked(record(lambda one=one: model(*one.args, **one.kwargs))) for one in workloads}  # type: ignore[misc]
    except NotRecordedError:
        return None
    counted = {one.name: one.weight for one in workloads}
    whole, host = (sum(counted[name] * each[name] for name in counted) for each in (us, eager))
    if whole >= host:
        return None
    for found in founds:
        _retime(found, whole / host, us if "" in found.paths else None, record, clocked)
    return us


def _retime(found: Found, part: float, whole: Mapping[str, float] | None, record: Record, clocked: Callable[[Replay], float]) -> None:
    """Have calls take what a replay of one takes; those that cannot be recorded by themselves take the same part as the whole model."""
    try:
        own = None if whole else clocked(record(lambda: found.module(*found.args, **found.kwargs)))
    except NotRecordedError:
        found.us = {name: [[us * part for us in times] for times in runs] for name, runs in found.us.items()}
        return
    found.us = {name: [[own if own is not None else whole[name]] * count] for name, count in found.calls.items()}  # type: ignore[index]
