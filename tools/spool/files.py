"""Files that are there whole or not at all: written beside their place, flushed to disk, and moved in."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

MAX_BYTES = 256 << 20
"""Longest file that is read: a job's problem may hold an exported module with its weights."""
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES, errno.EINVAL}


def replace(path: Path, text: str, *, durable: bool = True) -> None:
    """Put `text` at `path`, over what is there; readers see the old or the new file, whole."""
    temporary = _beside(path, text, durable=durable)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _flush(path.parent)


def create(path: Path, text: str) -> bool:
    """Put `text` at `path` unless something is there: of several writers exactly one is told True."""
    temporary = _beside(path, text, durable=True)
    try:
        made = _link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if made:
        _flush(path.parent)
    return made


def _link(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        # over NFS the reply to a link that succeeded may be lost, and its repetition fails
        return temporary.stat().st_nlink == 2
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # a file system without hard links: two writers at one moment could both believe they were first
        if path.exists():
            return False
        temporary.replace(path)
    return True


def create_folder(path: Path, name: str, text: str) -> bool:
    """Make the folder `path` with the one file `name` in it, by one rename: of several makers exactly one is told True."""
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}"
    temporary.mkdir()
    try:
        _write(temporary / name, text, durable=True)
        temporary.rename(path)
    except OSError as error:
        if error.errno not in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOENT}:
            raise
        # where the reply to a rename that succeeded was lost, ours is in place and its repetition found nothing to move
        return not temporary.exists() and _holds(path / name, text)
    finally:
        (temporary / name).unlink(missing_ok=True)
        if temporary.exists():
            temporary.rmdir()
    _flush(path.parent)
    return True


def read(path: Path) -> str | None:
    """The text at `path`, or None where nothing is; ValueError where it is no text, too long, or no file to read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (IsADirectoryError, PermissionError) as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from error
    except OSError as error:
        # over NFS a file replaced while it was opened; the next look finds the new one
        if error.errno == errno.ESTALE:
            return None
        raise
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES >> 20} MiB")
    return data.decode()


def names(folder: Path) -> list[str]:
    """List a folder's names, oldest first; what begins with a dot is still being written."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                found.append((entry.stat().st_mtime, entry.name))
            except FileNotFoundError:
                continue
    return [name for _, name in sorted(found)]


def _beside(path: Path, text: str, *, durable: bool) -> Path:
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}"
    _write(temporary, text, durable=durable)
    return temporary


def _write(path: Path, text: str, *, durable: bool) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    """Have the new name itself survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some file systems flush no folders
        if error.errno not in {errno.EINVAL, errno.EBADF, errno.EROFS}:
            raise
    finally:
        os.close(descriptor)


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except OSError:
        return False
