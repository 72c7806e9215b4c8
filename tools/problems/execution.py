"""Running a user's source as a module of its own, from a real file, and saying where it failed."""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from tools.errors import UserError
from tools.problems.patience import EndlessError, limited
from tools.scratch import PREFIX, remove_scratch, scratch_folder

_numbers = itertools.count()
_folders: dict[int, Path] = {}


def run_source(source: str, title: str) -> ModuleType:
    """Execute `source` as a new module from a real file, so that `inspect.getsource` works on what it defines.

    The module's name is unique: two problems, or two openings of one, share nothing. What the source raises becomes a
    UserError that names the line.
    """
    name = f"kernelwright_problem_{next(_numbers)}"
    path = _folder() / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with blaming(title, module, "running the file"), limited():
            # its loader would keep byte code of it beside the file, which nobody reads again
            exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))  # noqa: S102 - it is there to be run
    except BaseException:
        forget(name)
        raise
    return module


def forget(name: str) -> None:
    """Drop a module that `run_source` made, and its file."""
    module = sys.modules.pop(name, None)
    if module is not None and module.__file__:
        Path(module.__file__).unlink(missing_ok=True)


@contextmanager
def blaming(title: str, module: ModuleType, doing: str) -> Iterator[None]:
    """Turn whatever the user's code raises into a UserError with the exception and its line in the user's file."""
    try:
        yield
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise complaint(title, module, doing, error) from error


def complaint(title: str, module: ModuleType, doing: str, error: BaseException) -> UserError:
    """Say what failed while `doing`, where in the user's file, and what to do."""
    where = _place(str(module.__file__), error)
    text = " ".join(str(error).split())[:300] or "no message"
    if isinstance(error, EndlessError):
        return UserError(f"{title}: {doing} does not end: {text}{where}.", "Make it return, or choose smaller sizes.")
    what = f"{title}: {doing} raised {type(error).__name__}{where}: {text}"
    if isinstance(error, ModuleNotFoundError):
        return UserError(f"{what}.", "Install that module, or put what it defines into the file: a problem is one self-contained file.")
    return UserError(f"{what.rstrip('.')}.", "Mend it: `python FILE` with a call of it at the end shows the whole trace.")


def _place(file: str, error: BaseException) -> str:
    """Name the innermost line of a file that raised; of no other frame is the source read, which takes longer than most references."""
    lines = [number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    if not lines:
        return ""
    text = linecache.getline(file, lines[-1]).strip()[:100]
    return f" in line {lines[-1]}" + (f" ({text})" if text else "")


def _folder() -> Path:
    """A folder of this process that disappears with it; a forked child gets its own."""
    pid = os.getpid()
    if pid not in _folders:
        _folders[pid] = scratch_folder(f"{PREFIX}problem-")
        atexit.register(remove_scratch, _folders[pid])
    return _folders[pid]
