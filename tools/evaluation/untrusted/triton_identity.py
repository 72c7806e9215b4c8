"""What tells one installation of Triton from another: the digests that were written down when it was installed.

Triton itself reads and hashes all of its 500 MB for that, a third of a second in every process that compiles.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from typing import Any

_PACKAGE = "triton"


def installed_key(package: str = _PACKAGE) -> str:
    """Name a package's files by version and digests, alike on every machine with the same wheel; empty where its installer wrote none."""
    try:
        found = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
    digests = sorted(f"{file} {file.hash.value}" for file in found.files or () if file.hash and file.parts[0] == package)
    return f"{found.version}-{hashlib.sha256(repr(digests).encode()).hexdigest()}" if digests else ""


def spare_hashing() -> None:
    """Have Triton name itself by what is written down, in this process and its forks, where anything is."""
    from triton.runtime import cache

    # Triton ships no types
    where: Any = cache
    if key := installed_key():
        where.triton_key = lambda: key
