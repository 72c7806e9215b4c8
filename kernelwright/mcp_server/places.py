"""Which files a coding agent may name: those below the root, and what runs have left; never anything else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.errors import UserError
from tools.scratch import PREFIX, scratch

LARGEST_BYTES = 1_000_000
"""Of a problem or a kernel; longer sources are refused before anybody reads them."""


@dataclass(frozen=True)
class Places:
    """The folders that calls may name files in."""

    root: Path
    """The agent's working folder; paths that are not absolute begin here."""
    home: Path
    """Of runs and knowledge: what runs delivered can be named, too."""

    def source(self, path: str) -> Path:
        """Find a problem or a kernel; raises UserError where it lies elsewhere, is no file, or is too long."""
        found = self._inside(path)
        if not found.is_file():
            raise UserError(f"There is no file {path}.", f"Name one below {self.root}.")
        if found.stat().st_size > LARGEST_BYTES:
            raise UserError(f"{path} has more than {LARGEST_BYTES} bytes.", "Give a source that a person could read.")
        return found

    def folder(self, path: str) -> Path:
        """Find a folder, such as an evidence bundle; raises UserError where it lies elsewhere or is none."""
        found = self._inside(path)
        if not found.is_dir():
            raise UserError(f"There is no folder {path}.", f"Name one below {self.root}, or one that a run has left.")
        return found

    def _inside(self, path: str) -> Path:
        try:
            # links are followed first: what counts is where the file lies
            found = (self.root / path).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise UserError(f"{path[:200]!r} is no path ({error}).", f"Name a file below {self.root}.") from error
        if not any(found.is_relative_to(place.resolve()) for place in (self.root, self.home / "runs")):
            raise UserError(f"{path} lies outside of {self.root}.", "Copy it there, or start the server with another --root.")
        return found


@contextmanager
def kernel_file(places: Places, kernel: str, kernel_text: str) -> Iterator[Path]:
    """Give the file of a kernel, which is named or given as text; raises UserError unless it is one of the two."""
    if bool(kernel) == bool(kernel_text):
        raise UserError("A kernel is a file or a text.", "Give `kernel`, a path, or `kernel_text`, its source.")
    if kernel:
        yield places.source(kernel)
        return
    if len(kernel_text.encode()) > LARGEST_BYTES:
        raise UserError(f"`kernel_text` has more than {LARGEST_BYTES} bytes.", "Give a source that a person could read.")
    with scratch(f"{PREFIX}mcp-") as folder:
        file = folder / "kernel.py"
        file.write_text(kernel_text, encoding="utf-8")
        yield file
