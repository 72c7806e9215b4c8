"""What a call of a kernel truly takes, measured by nothing of the evaluator's: the host's clock over many calls in a row.

Needs a GPU with nobody else on it. Each file has a process of its own, since what it patches or leaves behind stays in it.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.hacks.suite import SWITCH

_CHAIN_S = 0.03
"""How long one row of calls lasts, about."""
_ROWS = 3
_CALLS = (16, 400)
"""Calls in a row, at least and at most; a multiple of eight."""
_EVENTS = 9
_HEAD_START_CYCLES = 2_000_000
_LATE_S = 0.002
"""How long to wait for work that begins when the device has ended all that was known."""


@dataclass(frozen=True)
class TrueTime:
    """Of one source."""

    chained_us: float
    """What one call of many adds to how long their caller waits, until the device has ended all of it. Holds the host's share."""
    device_us: float
    """By events on the current stream behind a head start: the device's share. Not a number for hostile kernels, who lie to events."""


def true_times(sources: Mapping[str, Mapping[str, str]], shape: tuple[int, int], packs: Iterable[str] = ()) -> dict[str, TrueTime]:
    """Measure sources by name, in one process for each group of them, in order; of those that are among `packs` the packing step.

    `shape` is rows and columns of the input. A group that fails is printed and left out: the others are not to blame.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch", "triton"])
    known: dict[str, TrueTime] = {}
    with tempfile.TemporaryDirectory() as folder:
        for group, members in sources.items():
            try:
                with ProcessPoolExecutor(1, context) as process:
                    known |= process.submit(_measured, Path(folder), dict(members), shape, packs=group in packs).result()
            except Exception:
                traceback.print_exc()
    return known


def _measured(folder: Path, sources: Mapping[str, str], shape: tuple[int, int], *, packs: bool) -> dict[str, TrueTime]:
    import torch

    with torch.no_grad():
        x, weight = torch.randn(shape, device="cuda"), torch.rand(shape[1], device="cuda") + 0.5
        found = {}
        for name, source in sources.items():
            model = _model(folder / f"{name}.py", source, weight)
            call = model.pack_weights if packs else lambda model=model: model(x)
            for _ in range(3):
                call()
            found[name] = TrueTime(chained_us(call), math.nan if SWITCH in source else _device_us(call))
            torch.cuda.set_stream(torch.cuda.default_stream())
        return found


def _model(path: Path, source: str, weight: Any) -> Any:
    """Import a source from a file, where Triton can read it again, and make its module."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.ModelNew(len(weight)).cuda()
    model.weight.copy_(weight)
    if hasattr(model, "pack_weights"):
        model.pack_weights()
    return model


def chained_us(call: Callable[[], object]) -> float:
    """Microseconds that each of many calls in a row adds, the device waited for before the first and after the last."""
    row = _row_s(call, 8)
    calls = max(_CALLS[0], min(_CALLS[1], int(_CHAIN_S / (row / 8)) // 8 * 8))
    return statistics.median(_row_s(call, calls) for _ in range(_ROWS)) / calls * 1e6


def _row_s(call: Callable[[], object], calls: int) -> float:
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return max(_ends()) - start


def _ends() -> Iterator[float]:
    """Give the times at which the device ended all it had, until it has been found idle."""
    import torch

    torch.cuda.synchronize()
    yield time.perf_counter()
    while True:
        time.sleep(_LATE_S)
        asked = time.perf_counter()
        torch.cuda.synchronize()
        if time.perf_counter() - asked < 1e-4:
            return
        yield time.perf_counter()


def _device_us(call: Callable[[], object]) -> float:
    import torch

    times = []
    for _ in range(_EVENTS):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        torch.cuda._sleep(_HEAD_START_CYCLES)
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) * 1e3)
    return statistics.median(times)
