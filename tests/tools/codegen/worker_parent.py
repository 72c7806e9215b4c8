"""The parent of workers: imports once what they all need, and forks one for every line of its input.

A line is a JSON list: a worker's script in this folder, its two arguments, and the file for what it prints. The exit status is answered
with a line. Many jobs are shared out among processes, for whoever asked waits, and other test workers often wait for the same results.
A worker that does not end is killed, so that a test fails and does not hang.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path

import torch
from triton.runtime import cache, jit

import tests.tools.codegen.quick_interpreter  # noqa: F401
import tools.codegen.templates.device.inspection
import tools.problems.analysis
import tools.problems.archive  # noqa: F401
from tests.support.forking import print_into, serve

LIMIT_S = 280
SHARES = 2
"""Processes that work on the jobs of one line."""
SHARED_FROM = 4
"""Jobs from which on they are shared out."""


def work(script: str, todo: str, done: str, said: str) -> None:
    """Be one worker, as a process of its own is, or hand its jobs to several and put their results together."""
    signal.alarm(LIMIT_S)
    print_into(said)
    jobs = json.loads(Path(todo).read_text())
    if len(jobs) < SHARED_FROM:
        _run(script, todo, done)
        return
    shares = [_Share(script, jobs[number::SHARES], f"{todo}.{number}", f"{done}.{number}") for number in range(SHARES)]
    results: list[object] = [None] * len(jobs)
    for number, share in enumerate(shares):
        results[number::SHARES] = share.results()
    Path(done).write_text(json.dumps(results))


class _Share:
    """A process that works on some of the jobs."""

    def __init__(self, script: str, jobs: list[object], todo: str, done: str) -> None:
        """Fork it."""
        Path(todo).write_text(json.dumps(jobs))
        self._done = Path(done)
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                signal.alarm(LIMIT_S)
                _run(script, todo, done)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)

    def results(self) -> list[object]:
        """Wait for its end and read what it found."""
        status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        assert status == 0, f"a share of the jobs ended with status {status}"
        return list(json.loads(self._done.read_text()))


def _run(script: str, todo: str, done: str) -> None:
    sys.argv = [script, todo, done]
    runpy.run_path(str(Path(__file__).with_name(script)), run_name="__main__")


def _get_ready() -> None:
    """Do once what else every worker would do: what Triton imports to know an argument's type, and its reading of all its own files."""
    jit.mangle_type(torch.ones(1))
    cache.triton_key()


if __name__ == "__main__":
    _get_ready()
    serve(work)
