"""Bundles on disk: written whole or not at all, read without following a link."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from tools.errors import UserError
from tools.evidence import manifest
from tools.evidence.bundle import Bundle
from tools.evidence.files import from_files, to_files
from tools.places import demand_writable


def check_place(folder: Path) -> None:
    """Refuse a place that a bundle cannot be written to, before anything is spent on one."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already.", "Name a folder that does not exist yet.")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise UserError(f"The folder {parent} does not exist.", "Make it, or choose another place.")
    demand_writable(parent)


def write_bundle(bundle: Bundle, folder: Path) -> str:
    """Write `bundle` to `folder`, which must not exist or be empty, and return its digest; a half bundle is never seen there.

    A weakened evaluation raises UserError.
    """
    bundle.evaluation.demand_whole()
    check_place(folder)
    folder = folder.absolute()
    files = to_files(bundle)
    making = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    try:
        making.mkdir()
        for name, data in {**files, manifest.MANIFEST: manifest.render(files)}.items():
            _write(making / name, data)
        making.rename(folder)
    except OSError as error:
        raise UserError(
            f"The bundle cannot be written to {folder} ({error.strerror}).", "Make room there, or choose another place."
        ) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return manifest.digest_of(folder)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_bundle(folder: Path) -> Bundle:
    """Read the bundle in `folder`; a folder that holds none raises UserError, and so does a file that is no valid record.

    Integrity is not looked at: ask `damages` first.
    """
    manifest.digest_of(folder)
    names = sorted(path.name for path in folder.iterdir())
    return from_files({name: _read(folder / name) for name in names if name != manifest.MANIFEST})


def _read(path: Path) -> bytes:
    try:
        return manifest.read_file(path)
    except UserError as error:
        raise UserError(f"{path.name}: {error.what}", error.mend) from error
