"""The lab's devices: which processes work on each, and which cores are kept for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.lab import device as lab_device
from benchmarks.lab import reference as lab_reference
from benchmarks.lab.device_lock import keep_cores
from benchmarks.lab.process import HelperPool


class Device(NamedTuple):
    """Who works on one device."""

    judges: tuple[HelperPool, ...]
    """One process each: a problem always goes to the same."""
    references: HelperPool


def keep_for(count: int, devices: int) -> list[list[int]]:
    """Take `count` cores for each device from this process and those that it will start."""
    cores = sorted(os.sched_getaffinity(0))
    if 2 * count * devices > len(cores):
        count = 0
    os.sched_setaffinity(0, cores[count * devices :])
    return [cores[count * number : count * (number + 1)] for number in range(devices)]


def open_device(
    device: str, target: str, scratch: Path, environment: dict[str, str], references: int, judges: int, cores: Sequence[int]
) -> Device:
    """Make one device's processes, which start when they are first asked; `cores` are kept from others while it is in use."""
    lock = str(scratch / "lock")
    keep_cores(Path(lock), cores)
    share = lab_device.KEPT_SHARE / judges
    return Device(
        judges=tuple(
            HelperPool(1, lab_device.serve, (device, target, str(scratch / f"sources{number}"), lock, share), environment)
            for number in range(judges)
        ),
        references=HelperPool(references, lab_reference.serve, (device, target, lock), environment),
    )
