"""Whose tensors may be on the device: what would not fit beside others waits; what ran out of memory beside them is done again alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tools.errors import MachineError

T = TypeVar("T")

PRECEDENCE_S = 60.0
"""Whoever has waited for this much longer than another comes first, however much room it needs."""
_SIGNS = ("out of memory", "OutOfMemoryError", "ALLOC_CONF", "ALLOC_FAILED", "nvmlInit_v2_() INTERNAL ASSERT")
"""How PyTorch and its libraries say it: the third stands at the end of a long sentence, which may be all that is left of it; the last comes
of a fork of a process that had asked NVML, where the sentence cannot be finished."""


def ran_out(*texts: str) -> bool:
    """Say whether an error is one of the device's memory."""
    return any(sign in text for text in texts for sign in _SIGNS)


def in_words(error: str) -> str:
    """Give PyTorch's sentence for it where its error is about something else."""
    return "CUDA out of memory" if ran_out(error) and "out of memory" not in error else error


@dataclass(eq=False)
class Holder:
    """One whose tensors are on the device, or who waits for that."""

    share: float
    """Of the device's memory."""
    came: float
    company: bool = False
    """Whether another's were there at the same time."""


class TensorRoom:
    """The memory of a device, by estimates. Nobody who holds a part of it may wait for more."""

    def __init__(self, most: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Let shares of the device's memory add up to `most`; one that is larger stays by itself."""
        self._most = most
        self._clock = clock
        self._changed = threading.Condition()
        self._held: list[Holder] = []
        self._waiting: list[Holder] = []

    @property
    def left(self) -> float:
        """What nobody holds; less than nothing where one that is too large stays by itself."""
        with self._changed:
            return self._most - sum(one.share for one in self._held)

    @contextmanager
    def taken(self, share: float) -> Iterator[Holder]:
        """Hold a share while the block runs, as soon as there is room."""
        one = Holder(share, self._clock())
        with self._changed:
            self._waiting.append(one)
            try:
                self._changed.wait_for(lambda: self._may_come(one))
            finally:
                self._waiting.remove(one)
                self._changed.notify_all()
            self._held.append(one)
            for other in self._held:
                other.company |= len(self._held) > 1
        try:
            yield one
        finally:
            with self._changed:
                self._held.remove(one)
                self._changed.notify_all()

    def beside(
        self, share: float, work: Callable[[], T], *, clear: Callable[[], None], doubted: Callable[[T], bool] = lambda _: False
    ) -> T:
        """Do something beside others; what ran out of memory there is done again when they are gone and the rest is cleared away.

        That is what raised a MachineError which says so, or is `doubted`.
        """
        with self.taken(share) as one:
            try:
                found = work()
            except MachineError as error:
                if not (one.company and ran_out(error.what)):
                    raise
            else:
                if not (one.company and doubted(found)):
                    return found
        with self.taken(max(share, self._most)):
            clear()
            return work()

    def _may_come(self, one: Holder) -> bool:
        if self._held and sum(other.share for other in self._held) + one.share > self._most:
            return False
        return all(one.came - other.came < PRECEDENCE_S for other in self._waiting)
