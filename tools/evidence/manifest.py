"""The manifest of a bundle: the SHA-256 of every file and a digest over them all, in one canonical text."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tools.errors import UserError

MANIFEST = "manifest.json"
FORMAT = "kernelwright-evidence-1"
"""Raise it with every change of what the files mean."""

MAX_BYTES = 1 << 30
"""Largest file that is read: a bundle from a stranger must not fill the memory."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


class Damage(NamedTuple):
    """One file that is not what the manifest says."""

    file: str
    what: str

    def __str__(self) -> str:
        """Read as `kernel.py: its contents were changed`."""
        return f"{self.file}: {self.what}"


def render(files: Mapping[str, bytes]) -> bytes:
    """Write the manifest of `files`; equal files give equal bytes."""
    return _text({name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()})


def _text(entries: Mapping[str, Mapping[str, Any]]) -> bytes:
    # only what the digest covers, in one order: nothing can be added to a manifest, and it can be written in one way only
    covered = {name: {"bytes": entry["bytes"], "sha256": entry["sha256"]} for name, entry in sorted(entries.items())}
    return (json.dumps({"format": FORMAT, "files": covered, "digest": _digest(covered)}, indent=1) + "\n").encode()


def _digest(entries: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [f"{entry['sha256']} {entry['bytes']} {name}\n" for name, entry in entries.items()]
    return hashlib.sha256("".join([FORMAT, "\n", *lines]).encode()).hexdigest()


def digest_of(folder: Path) -> str:
    """Read the digest that names the bundle in `folder`; a folder without a manifest of this format raises UserError."""
    path = folder / MANIFEST
    mend = "Name the folder that `optimize` or `evaluate --bundle` wrote."
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.", mend)
    if not path.is_file():
        raise UserError(f"{folder} is no evidence bundle: it has no {MANIFEST}.", mend)
    try:
        found = json.loads(read_file(path))
        name, digest = found["format"], found["digest"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    if name != FORMAT and isinstance(name, str) and name.startswith("kernelwright-evidence-"):
        raise UserError(
            f"The bundle in {folder} has the format {name[:60]!r}, this version reads {FORMAT!r}.", "Verify it with its own version."
        )
    return digest if isinstance(digest, str) else ""


def damages(folder: Path) -> tuple[Damage, ...]:
    """Name every file in `folder` that was changed, added or removed since the manifest was written, the manifest too."""
    try:
        data = read_file(folder / MANIFEST)
        entries = json.loads(data)["files"]
        canonical = all(_NAME.fullmatch(name) for name in entries) and data == _text(entries)
    except (UserError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return (Damage(MANIFEST, "it is no manifest of this format"),)
    if not canonical:
        return (Damage(MANIFEST, "its own contents were changed: digest and text do not belong together"),)
    present = {path.name for path in folder.iterdir()} - {MANIFEST}
    found = [_damage(folder / name, entry) for name, entry in entries.items() if name in present]
    found += [Damage(name, "it is missing") for name in entries if name not in present]
    found += [Damage(name, "it was added: the manifest does not name it") for name in present if name not in entries]
    return tuple(sorted(one for one in found if one is not None))


def _damage(path: Path, entry: Mapping[str, Any]) -> Damage | None:
    try:
        data = read_file(path)
    except UserError as error:
        return Damage(path.name, error.what)
    same = len(data) == entry["bytes"] and hashlib.sha256(data).hexdigest() == entry["sha256"]
    return None if same else Damage(path.name, "its contents were changed")


def read_file(path: Path) -> bytes:
    """Read a regular file that is no link, up to `MAX_BYTES`; anything else raises UserError."""
    mend = "Get the bundle again from where it came."
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"it cannot be read ({error.strerror})", mend) from error
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise UserError("it is no regular file", mend)
        if found.st_size > MAX_BYTES:
            raise UserError(f"it is larger than {MAX_BYTES >> 20} MiB", mend)
        return file.read(MAX_BYTES)
