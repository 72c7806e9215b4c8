"""A process that has imported what its children need, and forks one for every line of its input."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from tests.support.breadth import GARBAGE


def serve(work: Callable[..., Any]) -> None:
    """Fork a child for every line, a JSON list of `work`'s arguments, and answer its exit status with a line.

    What is imported by now stays: no child looks for garbage in it, which takes time and copies the memory that it lies in.
    """
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    for line in sys.stdin:
        assert threading.active_count() == 1
        pid = os.fork()
        if pid == 0:
            _be(work, json.loads(line))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


def print_into(out: str, err: str = "") -> None:
    """Have this process print into files; errors into the same one where none is named for them."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.dup2(os.open(out, flags), 1)
    os.dup2(os.open(err, flags) if err else 1, 2)


def _be(work: Callable[..., Any], arguments: list[str]) -> NoReturn:
    """Be one child, as a process of its own is."""
    status = 1
    try:
        work(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
