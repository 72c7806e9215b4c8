"""What an evaluator works with on its node: this machine's own pool on the one GPU that Ray gave it, or the interpreter."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import tools
from tools.errors import MachineError
from tools.evaluation.local import LocalPool
from tools.evaluation.protocol import EvaluatorPool
from tools.hardware.devices import visible_devices
from tools.scratch import PREFIX, scratch_folder

OPENER = "tools.cluster.station:open_station"
"""What opens a station: `module:name` of a function that takes an `Order`."""


@dataclass(frozen=True)
class Order:
    """What is wanted of an evaluator."""

    gpu: bool
    """One NVIDIA GPU, the one that Ray gave; else Triton's interpreter on the processor."""
    parallel: int
    compile_s: float
    max_autotune: bool
    builds: Any = None
    """Where candidates are built: a remote function of Ray's; None builds them here."""


@dataclass(frozen=True)
class Station:
    """An opened evaluator."""

    pool: EvaluatorPool
    device: str = ""
    """Title of the GPU; empty for the interpreter."""
    unit: str = ""
    calibrate: Callable[[], Awaitable[float]] | None = None
    """Times the calibration kernel, in microseconds; None where nothing is timed."""


def open_station(order: Order) -> Station:
    """Open this node's pool."""
    scratch = scratch_folder(f"{PREFIX}ray-")
    # sandboxes run as other users and must reach their own folders below
    scratch.chmod(0o711)
    if not order.gpu:
        return Station(LocalPool(scratch, None, order.parallel))
    there = visible_devices()
    if not there:
        # Ray counts what it was told (--num-gpus), whatever the driver says
        raise MachineError(
            "Ray gave a GPU, and the NVIDIA driver here shows none.", "Mend the driver, or start Ray there without --num-gpus."
        )
    index, title = next(iter(there.items()))
    builds = None
    if order.builds is not None:
        from tools.cluster.builds import RayBuilds

        builds = RayBuilds(order.builds)
    pool = LocalPool(scratch, index, order.parallel, max_autotune=order.max_autotune, compile_s=order.compile_s, builds=builds)
    return Station(pool, title, str(index), pool.calibrate)


def opened(name: str, order: Order) -> Station:
    """Open a station by the name of what opens it."""
    module, _, function = name.partition(":")
    found: Station = getattr(import_module(module), function)(order)
    return found


@cache
def code_hash() -> str:
    """Hash of `tools`, all that an evaluator runs: equal for equal code, whatever the version says."""
    home, digest = Path(tools.__file__).parent, hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        digest.update(f"{path.relative_to(home)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
