"""The parent of workers: imports once what they all need, and forks one for every line of its input.

A line is a JSON list: a worker's script in this folder, its two arguments, and the file for what it prints. The exit status is answered
with a line. A worker that does not end is killed, so that a test fails and does not hang.
"""

from __future__ import annotations

import runpy
import signal
import sys
from pathlib import Path

import torch  # noqa: F401
import triton.language  # noqa: F401

from tests.support.forking import print_into, serve

LIMIT_S = 280


def work(script: str, todo: str, done: str, said: str) -> None:
    """Be one worker, as a process of its own is."""
    signal.alarm(LIMIT_S)
    print_into(said)
    sys.argv = [script, todo, done]
    runpy.run_path(str(Path(__file__).with_name(script)), run_name="__main__")


if __name__ == "__main__":
    serve(work)
