"""Seeing asynchronous work through from anywhere: from a script, and from a notebook, whose own loop is running already."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns, in a thread of its own where this one has a loop; an interrupt cancels it and waits until it is over."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _Apart(work).result()


class _Apart(Generic[T]):
    """Work in a loop of another thread."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(work)
        self._thread = threading.Thread(target=self._run, name="kernelwright")
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_until_complete(asyncio.wait([self._task]))

    def result(self) -> T:
        """Wait for the result; raise what the work raises."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join()
            raise
        return self._task.result()
