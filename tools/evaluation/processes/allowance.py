"""How long a candidate may take, by its own use of the machine: a busy machine takes longer and costs it nothing.

Its own time is what it computes, and what it sleeps through; not what it waits for a core. A limit by the wall clock stays as a
backstop, and says nothing about the candidate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.own_time import Usage, usage_of

T = TypeVar("T")

_FIRST_S, _LAST_S = 0.1, 1.0
"""Between two looks at a process that has not answered: each costs some reads of /proc."""
_ASLEEP = 0.5
"""Share of a look's time without processor time from which on a process in which nothing is awake has slept."""
_BACKSTOP = 20.0
"""Times the limit, on the wall clock: a machine that gives a process less than a twentieth of a core judges nothing."""
_LEAST_BACKSTOP_S = 600.0


class StarvedError(DeadlineError):
    """The backstop: the machine gave the process too little time for anything to be said about it."""


class Allowance:
    """Seconds of its own that a child may take, from `begin` on."""

    def __init__(self, limit_s: float, backstop_s: float = 0.0, usage: Callable[[int], Usage | None] = usage_of) -> None:
        """Allow `limit_s`, and `backstop_s` by the wall clock (0: many times as much); `usage` reads what a process has used."""
        self.limit_s = limit_s
        self.spent_s = 0.0
        """As it was charged last."""
        self.asleep_s = 0.0
        """How much of that was slept through."""
        self._pid = 0
        self._processor_s = 0.0
        self._looked = self._began = time.monotonic()
        self._backstop = self._began + (backstop_s or max(_LEAST_BACKSTOP_S, _BACKSTOP * limit_s))
        self._usage = usage

    def begin(self, child: Child) -> None:
        """Count from now on; what the process did before, for another size, is not of this allowance."""
        self._pid = child.pid
        found = self._usage(self._pid)
        self._processor_s = found.processor_s if found else 0.0

    @property
    def used_up(self) -> bool:
        """Whether more was taken than is allowed."""
        return self.spent_s > self.limit_s

    def charge(self, *, waited: bool = False) -> float:
        """Charge what was used since it was charged last, and return all that was spent, seconds.

        A child that has answered sleeps until it is asked again: only one that is `waited` for is charged for its sleep.
        """
        now = time.monotonic()
        passed, self._looked = now - self._looked, now
        found = self._usage(self._pid)
        if found is None:
            # where /proc is hidden from us nothing tells a wait from work
            self.spent_s += passed
            return self.spent_s
        computed = max(0.0, found.processor_s - self._processor_s)
        self._processor_s = found.processor_s
        if waited and not found.awake and computed < _ASLEEP * passed:
            self.asleep_s += passed - computed
            self.spent_s += passed - computed
        self.spent_s += computed
        return self.spent_s

    def wait(self, receive: Callable[[float], T]) -> T:
        """Call `receive` with one moment after the other, until it returns something.

        Raises DeadlineError where the child has used up its time, and StarvedError at the backstop.
        """
        # what passed since the last look, this side was busy and the child waited for it
        self._looked = time.monotonic()
        pause = _FIRST_S
        while True:
            try:
                return receive(min(time.monotonic() + pause, self._backstop))
            except DeadlineError:
                self.charge(waited=True)
            if self.used_up:
                raise DeadlineError
            if time.monotonic() >= self._backstop:
                raise StarvedError
            pause = min(pause * 1.5, _LAST_S, max(_FIRST_S, self.limit_s - self.spent_s))

    def overrun(self, option: str = "--timeout") -> str:
        """Say how the limit was passed, and the option that changes it."""
        slept = f", {self.asleep_s:.0f} s of them asleep" if self.asleep_s >= 1 else ""
        return f"it took more than the {_seconds(self.limit_s)} of its own time that {option} leaves it{slept}"

    def starved(self) -> str:
        """Say that the backstop ended it."""
        waited = time.monotonic() - self._began
        return f"this machine is too busy: in {waited:,.0f} s it gave the process {_seconds(self.spent_s)} of processor time"


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 or math.isclose(value, round(value)) else f"{value:.1f} s"
