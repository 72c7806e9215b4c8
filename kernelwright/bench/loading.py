"""Reads problem files in processes of their own, side by side: user code that crashes, hangs or fills memory costs its own row alone."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, Protocol

from tools.errors import UserError
from tools.records import PrecisionPolicy, Problem, Record
from tools.references.jobs import ReadAnswer
from tools.references.reading import read_apart

_AT_ONCE = 32
"""Files that are read side by side at most: more than a bench asks for."""


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
    """A process for each file; who waits for one waits for no other."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="reading")
        self._cancel = os.eventfd(0, os.EFD_CLOEXEC)

    async def load(self, file: Path, policy: PrecisionPolicy) -> Loaded:
        """Read one problem file."""
        return _loaded(await asyncio.get_running_loop().run_in_executor(self._threads, self._read, file, policy))

    def close(self) -> None:
        """End every process that is reading."""
        if self._cancel >= 0:
            os.eventfd_write(self._cancel, 1)
            self._threads.shutdown()
            os.close(self._cancel)
            self._cancel = -1

    def _read(self, file: Path, policy: PrecisionPolicy) -> ReadAnswer:
        return read_apart(file, policy, cancel=self._cancel)


def _loaded(found: ReadAnswer) -> Loaded:
    return Loaded(problem=found.problem, variants=found.variants, failure=found.failure, reason=found.what)


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
