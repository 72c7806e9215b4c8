"""Folders for a while: their owner removes them, and the next run of the same user those whose owner was killed.

In each lies a file that its owner, and whatever it forked, holds locked for life (flock): a lock that can be taken tells of a dead owner,
whatever process numbers were given to others since, and in whichever namespace they count.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "kernelwright-"
"""Of folders in the system's place for temporary files."""
HELD = f".held-on-{os.uname().nodename}"
"""Name of the file that is locked; a folder without one, another machine's on a shared disk too, is not looked at."""
_held: dict[Path, tuple[int, int]] = {}
"""Of each folder that was made here: by which process, as forks see it too, and the descriptor of its lock."""


def scratch_folder(prefix: str, inside: Path | None = None) -> Path:
    """Make a folder `prefix`… in `inside`, or where temporary files lie, and hold it until this process ends or removes it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=inside))
        lock = os.open(folder / HELD, os.O_RDWR | os.O_CREAT, 0o600)
        # a file system without locks has none to take either, and nothing there is swept
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / HELD).exists():
            _held[folder] = os.getpid(), lock
            return folder
        # whoever swept took it for a dead one's, before it was locked
        os.close(lock)


def remove_scratch(folder: Path) -> None:
    """Remove a folder with all that is in it; in a fork of its owner this does nothing."""
    owner, lock = _held.get(folder, (0, -1))
    if owner == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        del _held[folder]


@contextmanager
def scratch(prefix: str, inside: Path | None = None) -> Iterator[Path]:
    """Make a folder and remove it in the end."""
    folder = scratch_folder(prefix, inside)
    try:
        yield folder
    finally:
        remove_scratch(folder)


def sweep(prefix: str = PREFIX, inside: Path | None = None) -> None:
    """Remove this user's folders `prefix`… in `inside`, or where temporary files lie, whose owners are dead."""
    for folder in (inside or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            lock = os.open(folder / HELD, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            # none of these folders, or gone by now
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            # its owner lives
            continue
        finally:
            os.close(lock)
