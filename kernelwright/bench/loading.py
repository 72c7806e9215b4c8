"""Reads problem files in processes of their own: user code that crashes, hangs or fills memory costs one row, not the bench."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Literal, Protocol

from tools.errors import UserError
from tools.records import PrecisionPolicy, Problem, Record

LIMIT_S = 900.0
"""A file that is not read in this time is given up. Most of KernelBench's take less than a second; its recurrent networks, whose small
variants are sought step by step, took up to three minutes on two crowded cores."""


class Loaded(Record):
    """A problem with its small variants, or why there is none."""

    problem: Problem | None = None
    variants: tuple[Problem, ...] = ()
    failure: Literal["", "random", "unreadable"] = ""
    """random: the reference is no function of its inputs."""
    reason: str = ""


class ProblemLoader(Protocol):
    """Reads problem files."""

    async def load(self, file: Path, policy: PrecisionPolicy) -> Loaded:
        """Read one; what is wrong with it is in the answer."""

    def close(self) -> None:
        """End what was started for it."""


class Loader:
    """One reading process, started at the first file; a file that kills or outlasts it gets a fresh one for the next."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._pool: ProcessPoolExecutor | None = None
        self._one = asyncio.Lock()

    async def load(self, file: Path, policy: PrecisionPolicy) -> Loaded:
        """Read one problem file."""
        async with self._one:
            self._pool = self._pool or ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_alone)
            work = asyncio.get_running_loop().run_in_executor(self._pool, load_now, file, policy)
            try:
                return await asyncio.wait_for(work, LIMIT_S)
            except TimeoutError:
                self._end()
                return Loaded(failure="unreadable", reason=f"{file.name} was not read within {LIMIT_S:.0f} s.")
            except BrokenProcessPool:
                self._end()
                return Loaded(failure="unreadable", reason=f"{file.name} ended the process that read it: a crash, or too little memory.")
            except asyncio.CancelledError:
                self._end()
                raise

    def close(self) -> None:
        """End the process."""
        self._end()

    def _end(self) -> None:
        if self._pool is None:
            return
        # a busy worker is not waited for: there is no public way to end it before Python 3.14
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None


def load_now(file: Path, policy: PrecisionPolicy) -> Loaded:
    """Read one problem file in this process; what is wrong with it is in the answer."""
    from tools.problems import load_problem, small_variants
    from tools.problems.trial import RandomReferenceError

    try:
        problem = load_problem(file, policy)
        return Loaded(problem=problem, variants=small_variants(problem))
    except RandomReferenceError as error:
        return Loaded(failure="random", reason=error.what)
    except UserError as error:
        return Loaded(failure="unreadable", reason=error.what)


def _alone() -> None:
    """Leave Ctrl-C to the parent, and the GPU and most cores to those who time."""
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 4))
