"""Calls as CUDA graphs, as models are served: what launches cost the host is paid once, and what is left is the device's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

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
