"""Who may use the device: checks side by side as far as its memory goes, a timing alone; what can be stopped rests meanwhile."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tools.errors import MachineError
from tools.evaluation.processes.device_turn import DeviceTurn

T = TypeVar("T")
_GLANCE_S = 0.01
"""Between two looks at whether another process is alone on the device: a timing settles for longer before it begins."""


@dataclass(eq=False)
class Stay:
    """One stay on the device."""

    waited_s: float = 0.0
    """How long it waited for the device."""
    company: bool = False
    """Whether another was there at the same time, so that a failure may be the other's fault."""
    size: float = 0.0
    """How much of the device it needs, as it says."""
    is_brief: bool = False
    """Whether it is none of those of whom there may be only so many."""


class Stoppable(Protocol):
    """What works on the device and can be made to rest."""

    def pause(self) -> None:
        """Have it rest."""

    def resume(self) -> None:
        """Have it go on."""


class Door(Protocol):
    """How something gets onto the device that takes long to begin."""

    def shared(self) -> AbstractContextManager[object]:
        """Be there beside others, which nobody who would be alone may interrupt."""

    def yielding(self, one: Stoppable) -> AbstractContextManager[None]:
        """Be there and rest while anybody is alone."""


class OpenDoor:
    """The door of whoever is alone on the device already."""

    def shared(self) -> AbstractContextManager[object]:
        """Be there."""
        return nullcontext()

    def yielding(self, one: Stoppable) -> AbstractContextManager[None]:
        """Be there and never rest."""
        return nullcontext()


class DeviceLock:
    """A lock with two doors; whoever waits to be alone goes before those who would share, so that timings come in a row.

    What is brief, and follows on a timing, waits for the row's end where others wait to share, beside whom it costs nothing.
    """

    def __init__(self, most: int, room: float = math.inf, turn: DeviceTurn | None = None) -> None:
        """Let at most `most` share the device, and whoever is brief, in this process's `turn` among others; with none it has no others.

        Their sizes add up to no more than `room`; one that is larger stays by itself.
        """
        self._turn = turn or DeviceTurn(None)
        self._most = most
        self._room = room
        self._changed = threading.Condition()
        self._present: list[Stay] = []
        self._stoppable: list[Stoppable] = []
        self._alone = self._elsewhere = self._watched = False
        self._waiting = self._seeking = self._following = 0
        """How many wait to be alone, and for a seat; and how many were alone and have something brief to do yet."""

    @property
    def in_line(self) -> int:
        """How many wait to be alone."""
        return self._waiting

    @contextmanager
    def yielding(self, one: Stoppable) -> Iterator[None]:
        """Let something be there beside others that rests while anybody is alone: nobody waits for it."""
        with self._changed:
            self._stoppable.append(one)
            if self._resting:
                one.pause()
            if self._turn.is_shared and not self._watched:
                self._watched = True
                threading.Thread(target=self._watch, name="device-turn", daemon=True).start()
        try:
            yield
        finally:
            with self._changed:
                self._stoppable.remove(one)
                one.resume()

    def _watch(self) -> None:
        """Have what yields rest while another process is alone on the device."""
        while True:
            elsewhere = self._turn.is_taken()
            with self._changed:
                self._rest(alone=self._alone, elsewhere=elsewhere)
                self._watched = bool(self._stoppable)
                if not self._watched:
                    return
            time.sleep(_GLANCE_S)

    def _rest(self, *, alone: bool, elsewhere: bool) -> None:
        """Pause or resume what yields, as somebody is alone here or in another process."""
        rested, self._alone, self._elsewhere = self._resting, alone, elsewhere
        if rested != self._resting:
            for one in self._stoppable:
                one.pause() if self._resting else one.resume()

    @property
    def _resting(self) -> bool:
        return self._alone or self._elsewhere

    def door(self, size: float) -> Door:
        """Give a door for something of a size."""
        return _SideDoor(self, size)

    @contextmanager
    def shared(self, size: float = 0.0, *, is_brief: bool = False) -> Iterator[Stay]:
        """Stay beside others."""
        stay, start = Stay(size=size, is_brief=is_brief), time.monotonic()
        with self._changed:
            self._seeking += not is_brief
            try:
                self._changed.wait_for(lambda: not self._alone and self._may_come(stay) and self._has_room(stay))
            finally:
                self._seeking -= not is_brief
            self._present.append(stay)
            if len(self._present) > 1:
                for one in self._present:
                    one.company = True
        try:
            with self._turn.shared():
                stay.waited_s = time.monotonic() - start
                yield stay
        finally:
            with self._changed:
                self._present.remove(stay)
                self._changed.notify_all()

    def beside(self, size: float, work: Callable[[Stay], T], doubted: Callable[[T], bool] = lambda _: False) -> T:
        """Do something beside others; what raised MachineError, or is doubted, while others were there is done again alone."""
        with self.shared(size) as stay:
            try:
                found = work(stay)
            except MachineError:
                if not stay.company:
                    raise
            else:
                if not stay.company or not doubted(found):
                    return found
        with self.alone() as stay:
            return work(stay)

    def _may_come(self, stay: Stay) -> bool:
        return not self._waiting or (stay.is_brief and not self._seeking)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Have something brief to do after being alone: others who would be alone wait for it, unless it can be done beside checks."""
        with self._changed:
            self._following += 1
        try:
            yield
        finally:
            with self._changed:
                self._following -= 1
                self._changed.notify_all()

    def _has_room(self, stay: Stay) -> bool:
        taken = sum(other.size for other in self._present)
        has_seat = stay.is_brief or sum(not other.is_brief for other in self._present) < self._most
        return not self._present or (has_seat and taken + stay.size <= self._room)

    @contextmanager
    def alone(self) -> Iterator[Stay]:
        """Stay with nobody else there."""
        start = time.monotonic()
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._alone and not self._present and (self._seeking or not self._following))
                self._rest(alone=True, elsewhere=self._elsewhere)
            finally:
                self._waiting -= 1
        try:
            with self._turn.alone():
                yield Stay(waited_s=time.monotonic() - start)
        finally:
            with self._changed:
                self._rest(alone=False, elsewhere=self._elsewhere)
                self._changed.notify_all()


class _SideDoor:
    """A door for what is there beside others."""

    def __init__(self, lock: DeviceLock, size: float) -> None:
        self._lock, self._size = lock, size

    def shared(self) -> AbstractContextManager[object]:
        return self._lock.shared(self._size)

    def yielding(self, one: Stoppable) -> AbstractContextManager[None]:
        return self._lock.yielding(one)
