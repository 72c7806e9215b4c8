"""Whether files can be made in a place, found out before anything is spent on what is to lie there."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.errors import UserError


def demand_writable(folder: Path) -> None:
    """Make a file without a name in `folder` and drop it; UserError where that cannot be done.

    Permissions alone do not tell: in procfs and on a read-only file system they allow it to root.
    """
    try:
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise UserError(f"No file can be made in the folder {folder} ({error.strerror}).", "Choose another place.") from error


def demand_file(path: Path) -> None:
    """Raise UserError where `path` cannot be written as a file: a folder, one in no folder, in a place that takes no files."""
    try:
        if path.is_dir():
            raise UserError(f"{path} is a folder.", "Name a file in it.")
        if not path.parent.is_dir():
            raise UserError(f"The folder of {path} does not exist.", "Make it, or name another file.")
        if path.exists():
            path.open("ab").close()
            return
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}).", "Name another file.") from error
    demand_writable(path.parent)
