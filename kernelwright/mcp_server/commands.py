"""Runs commands of the command line for a coding agent: each in a process of its own, whose JSON is the answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from tools.errors import UserError

Told = Callable[[str], Awaitable[None]]
"""Takes a line of progress."""
Facts = dict[str, Any]

PROGRAM = (sys.executable, "-m", "kernelwright")
GRACE_S = 10.0
"""How long a stopped command has to end in order, so that its run can be resumed."""
LONGEST_LINE = 1 << 16
"""Bytes of a line of progress; what is longer is a program's output, not ours."""
LAST_LINES = 6
"""Of standard error, which say why there is no answer."""


class Commands:
    """At most so many commands at once; the others wait in line."""

    def __init__(self, root: Path, home: Path, jobs: int, queue: int = 16, program: Sequence[str] = PROGRAM) -> None:
        """Run `program` in the folder `root`, with runs and knowledge in `home`, `jobs` at once, with at most `queue` waiting."""
        self._root, self._home, self._program = root, home, program
        self._free = asyncio.Semaphore(jobs)
        self._room = jobs + queue
        self._present = 0

    async def run(self, command: str, *words: str, told: Told | None = None) -> Facts:
        """Give what `kernelwright COMMAND --json WORDS` prints, as an object, and tell its progress.

        Raises UserError with the command's own line where it refuses, and where too many wait. Cancelled, it stops the command.
        """
        async with self._place(), self._process((*command.split(), "--json", *words)) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            answer, said, _ = await asyncio.gather(process.stdout.read(), _lines(process.stderr, told), process.wait())
        return _facts(answer, said)

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        if self._present >= self._room:
            raise UserError(f"{self._present} calls are under way or wait already.", "Wait for one to end, then try again.")
        self._present += 1
        try:
            async with self._free:
                yield
        finally:
            self._present -= 1

    @contextlib.asynccontextmanager
    async def _process(self, words: tuple[str, ...]) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            *(*self._program, *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._root,
            # the checkout or the installation that this server runs from, wherever the root lies
            env={**os.environ, "KERNELWRIGHT_HOME": str(self._home), "PYTHONPATH": _search_path()},
            limit=LONGEST_LINE,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            await asyncio.shield(_stopped(process))


def _search_path() -> str:
    # the folder that holds the package `kernelwright`
    inside = Path(__file__).resolve().parents[2]
    return os.pathsep.join(filter(None, (str(inside), os.environ.get("PYTHONPATH", ""))))


async def _lines(stream: asyncio.StreamReader, told: Told | None) -> list[str]:
    """Read lines to their end, tell each, and give the last ones."""
    last: list[str] = []
    while True:
        try:
            line = (await stream.readline()).decode(errors="replace")
        except ValueError:
            # longer than the limit: asyncio has dropped it
            continue
        if not line:
            return last
        last = [*last, line.rstrip()][-LAST_LINES:]
        if told is not None:
            await told(line.strip())


async def _stopped(process: asyncio.subprocess.Process) -> None:
    """End a process that has not ended, and all it began: in order if it can, else by force."""
    if process.returncode is not None:
        return
    for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience)
            return


def _facts(answer: bytes, said: list[str]) -> Facts:
    with contextlib.suppress(ValueError):
        found = json.loads(answer)
        return found if isinstance(found, dict) else {"found": found}
    words = " ".join(line.strip() for line in said if line.strip()) or "it ended without an answer"
    raise UserError(words.removeprefix("kernelwright: "), "")
