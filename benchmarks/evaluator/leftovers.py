"""What could be left of evaluations on this machine: processes, descriptors, scratch folders, control groups, memory."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tools.hardware.devices import first_device

State = dict[str, int]
NONE_MORE = ("processes", "descriptors", "scratch_folders", "control_groups")
"""Of these nothing more may be there afterwards."""
GPU_ROOM_MIB = 64
"""By how much the device's memory in use may grow: its driver keeps some of its own."""


def look(folder: Path, *, gpu: bool) -> State:
    """Count what could leak, of this process, all below it, and the pool in `folder`."""
    family = _family()
    state = {
        "processes": len(family),
        "descriptors": sum(_descriptors(pid) for pid in family),
        "scratch_folders": sum(1 for _ in (folder / "scratch").glob("phases-*/*-*")),
        "control_groups": sum(1 for _ in Path("/sys/fs/cgroup").glob(f"**/kernelwright-{os.getpid()}-*")),
        "resident_mib": sum(_resident(pid) for pid in family) >> 20,
    }
    return state | ({"gpu_mib": _gpu_mib()} if gpu else {})


async def look_settled(folder: Path, before: State, *, gpu: bool) -> State:
    """Look until nothing is more than before, for ten seconds at most: what has been killed needs a moment to go."""
    for _ in range(50):
        after = look(folder, gpu=gpu)
        if all(after[key] <= before[key] for key in NONE_MORE):
            break
        await asyncio.sleep(0.2)
    return after


def is_clean(before: State, after: State) -> bool:
    """Whether nothing was left."""
    none = all(after[key] <= before[key] for key in NONE_MORE)
    return none and after.get("gpu_mib", 0) <= before.get("gpu_mib", 0) + GPU_ROOM_MIB


def started_below(pid: int) -> dict[int, int]:
    """When each process below `pid` started, and it itself, in ticks since the machine did: with its number that is a process's name."""
    return {number: began for number in _family(pid) if (began := _began(number))}


def alive(named: dict[int, int]) -> list[int]:
    """Which of these processes are still there; one that has ended and waits to be fetched is not."""
    return [pid for pid, began in named.items() if _began(pid) == began]


def _began(pid: int) -> int:
    """When a process started; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _family(root: int = 0) -> list[int]:
    """List a process, this one unless another is named, and all below it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    family = [root or os.getpid()]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def _descriptors(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _gpu_mib() -> int:
    import pynvml

    nvml: Any = pynvml
    nvml.nvmlInit()
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(first_device() or 0)).used) >> 20
    finally:
        nvml.nvmlShutdown()
