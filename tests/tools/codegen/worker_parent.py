"""The parent of workers: imports once what they all need, and forks one for every line of its input.

A line is a JSON list: a worker's script in this folder, its two arguments, and the file for what it prints. The exit status is answered
with a line. A worker that does not end is killed, so that a test fails and does not hang.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import NoReturn

import torch  # noqa: F401
import triton.language  # noqa: F401

LIMIT_S = 280


def forked(script: str, todo: str, done: str, said: str) -> NoReturn:
    """Be one worker, as a process of its own is."""
    status = 1
    try:
        signal.alarm(LIMIT_S)
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = [script, todo, done]
        runpy.run_path(str(Path(__file__).with_name(script)), run_name="__main__")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Fork a worker for every line of the input."""
    for line in sys.stdin:
        assert threading.active_count() == 1
        pid = os.fork()
        if pid == 0:
            forked(*json.loads(line))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
