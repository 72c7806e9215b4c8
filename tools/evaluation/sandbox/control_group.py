"""A control group around one sandbox: bounds the memory and processes of everything in it together, shared memory included."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

from tools.evaluation.sandbox.isolation import Limits

_MOUNT = Path("/sys/fs/cgroup")
_PREFIX = "kernelwright"
_counter = itertools.count()
_GONE_S = 1.0
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.0005, 0.02


class ControlGroup:
    """One group, in the unified hierarchy or in the two older ones; it must be empty when it is removed."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        """Keep the group's folders; none means that there is no group."""
        self._folders = folders

    @property
    def files(self) -> tuple[str, ...]:
        """Files that a process writes 0 to in order to join."""
        return tuple(str(folder / "cgroup.procs") for folder in self._folders)

    def remove(self) -> None:
        """Remove the group; the kernel may need a moment to see that its last process is gone."""
        for folder in self._folders:
            deadline, pause_s = time.monotonic() + _GONE_S, _FIRST_PAUSE_S
            while time.monotonic() < deadline:
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    # a device may be held meanwhile
                    time.sleep(pause_s)
                    pause_s = min(2 * pause_s, _LAST_PAUSE_S)


def make(limits: Limits) -> ControlGroup:
    """Make a group with these limits; one without folders where the machine allows none."""
    name = f"{_PREFIX}-{os.getpid()}-{next(_counter)}"
    made: list[Path] = []
    try:
        for parent, settings in _hierarchies(limits):
            folder = parent / name
            folder.mkdir()
            made.append(folder)
            for file, value in settings.items():
                (folder / file).write_text(str(value))
    except OSError:
        ControlGroup(tuple(made)).remove()
        return ControlGroup(())
    return ControlGroup(tuple(made))


def memory_bytes(mount: Path = _MOUNT) -> int:
    """Memory that the processes here may use together: the machine's, or less where the topmost group they see has a limit."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in (mount / "memory.max", mount / "memory" / "memory.limit_in_bytes"):
        try:
            word = file.read_text().strip()
        except OSError:
            continue
        found += [int(word)] if word.isdecimal() else []
    return min(found)


def sweep() -> None:
    """Remove groups of owners that died without removing them."""
    for parent in (_MOUNT, _MOUNT / "memory", _MOUNT / "pids"):
        for folder in parent.glob(f"{_PREFIX}-*-*"):
            owner = folder.name.split("-")[1]
            if not Path("/proc", owner).exists():
                ControlGroup((folder,)).remove()


def _hierarchies(limits: Limits) -> list[tuple[Path, dict[str, int]]]:
    """Where groups are made here, and the files that hold their limits."""
    if (_MOUNT / "cgroup.controllers").exists():
        return [(_MOUNT, {"memory.max": limits.total_bytes, "memory.swap.max": 0, "pids.max": limits.processes})]
    return [
        (_MOUNT / "memory", {"memory.limit_in_bytes": limits.total_bytes}),
        (_MOUNT / "pids", {"pids.max": limits.processes}),
    ]
