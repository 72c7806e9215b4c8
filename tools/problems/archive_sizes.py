"""Which sizes of an exported module's inputs are free: read from its archive without opening the module."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from functools import lru_cache
from typing import Any

from tools.problems.constants import Constant

ARGUMENTS = "arguments.json"
"""The file in the archive that describes the arguments of a call."""

_NOWHERE = (0, 0, 0, 0)
"""An archive has no lines."""


def archive_sizes(source: str) -> tuple[Constant, ...]:
    """List the free sizes of the base64 archive `source` by the first place they stand in, e.g. `x[0]`; none of what is no such archive."""
    found: dict[str, int] = {}
    for argument in _arguments(source):
        for label, size in zip(argument.get("sizes", ()), argument.get("shape", ()), strict=False):
            if label is not None:
                found.setdefault(label, size)
    return tuple(Constant(label, label, size, _NOWHERE) for label, size in found.items())


def are_chosen(source: str) -> bool:
    """Whether the user said which sizes vary: then these do, and no others."""
    return any(argument.get("chosen") for argument in _arguments(source))


@lru_cache(maxsize=64)
def _arguments(source: str) -> list[dict[str, Any]]:
    try:
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(source))) as archive:
            name = next(name for name in archive.namelist() if name.endswith(f"/{ARGUMENTS}"))
            arguments: list[dict[str, Any]] = json.loads(archive.read(name))
            return arguments
    except (zipfile.BadZipFile, StopIteration, ValueError):
        return []
