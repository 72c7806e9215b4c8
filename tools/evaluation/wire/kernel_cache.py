"""What Triton has compiled, packed so that another process need not compile it again.

The builder's cache goes to the candidate's own runners, and to nobody else: both are untrusted, and of the same candidate.
"""

from __future__ import annotations

import base64
import io
import os
import zipfile
from pathlib import Path

MAX_BYTES = 32 << 20
"""A cache that is larger, packed or unpacked, is not handed on: its kernels are compiled again."""


def pack(folder: Path) -> str:
    """Pack every file below `folder`, base64 of a zip archive; empty where there are none or too much."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    if not files or sum(path.stat().st_size for path in files) > MAX_BYTES:
        return ""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in files:
            archive.write(path, path.relative_to(folder))
    return base64.b64encode(packed.getvalue()).decode()


def unpack(packed: str, folder: Path) -> None:
    """Write the files back below `folder`; what is no such archive, or too large, is left alone: then Triton compiles."""
    if not packed:
        return
    try:
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(packed))) as archive:
            if sum(entry.file_size for entry in archive.infolist()) <= MAX_BYTES:
                folder.mkdir(parents=True, exist_ok=True)
                # what is there may be loaded: writing over it would end the process
                archive.extractall(folder, [name for name in archive.namelist() if not (folder / name).exists()])
    except (ValueError, OSError, zipfile.BadZipFile):
        return


def cache_folder() -> Path | None:
    """Where this process's Triton keeps what it compiles, as its sandbox set it."""
    place = os.environ.get("TRITON_CACHE_DIR")
    return Path(place) if place else None
