"""The timed sessions of one evaluation: the candidate's own, and those of its recorded launches alone.

Only `measure` needs the device for itself: inputs are made before it, and judged after it, beside others.
"""

from __future__ import annotations

import select
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from tools.evaluation.processes.room import Room
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.timed.baseline_client import BaselineProcess
from tools.evaluation.supervisor.timed.sealed_session import is_sealable, published, unsealable
from tools.evaluation.supervisor.timed.steadiness import Steadiness
from tools.evaluation.supervisor.timed.timing import TimedSession
from tools.evaluation.supervisor.timed.tries import Case, Tries
from tools.records import Timing


class Sessions:
    """All of them, as a context manager that keeps their inputs."""

    def __init__(self, workers: WorkerPool, case: Case, cancel: int, cache: str) -> None:
        """Plan them; `cache` is what is compiled of the candidate."""
        self._given = workers, case, cancel, cache
        self._case, self._cache = case, cache
        given = workers, case.request.problem, case.request.target, case.request.stage, cancel, case.part
        rules = Steadiness(), partial(_wait, cancel)
        sealable = not unsealable(case.build, case.request)
        self._own = Tries(TimedSession(*given, sealable=sealable), *rules)
        self._sealed = Tries(TimedSession(*given, case.build.plan), *rules) if is_sealable(case.build, case.request) else None
        self._was_sealed = False
        self._held = ExitStack()

    @property
    def nbytes(self) -> int:
        """What their inputs take, and what is kept to be judged."""
        return sum(tries.first.nbytes for tries in (self._own, self._sealed) if tries is not None)

    def prepare(self) -> None:
        """Have the inputs of all of them made."""
        for tries in (self._own, self._sealed):
            if tries is not None:
                tries.first.prepare(self._held)

    def measure(self, baseline: BaselineProcess) -> None:
        """Time the candidate, and its launches alone, with nobody else on the device."""
        self._own.measure(self._case, baseline, self._held, self._cache)
        if self._sealed is not None and isinstance(self._own.found, Timing):
            self._sealed.measure(self._case, baseline, self._held)
            self._was_sealed = True

    def judged(self) -> Outcome | Timing:
        """Have the oracle judge what was called, and say what comes of it all."""
        own = self._own.judged(self._case)
        if isinstance(own, Outcome):
            return own
        sealed = self._sealed.judged(self._case) if self._sealed is not None and self._was_sealed else None
        return published(self._case.request, self._case, own, sealed)

    def at_once(self, baseline: BaselineProcess) -> Outcome | Timing:
        """Do it all with nobody else on the device, the inputs of one session after the other: large ones have no room beside others."""
        with ExitStack() as held:
            self._own.measure(self._case, baseline, held, self._cache)
            with self._case.part("oracle"):
                baseline.release()
                own = self._own.judged(self._case)
        if isinstance(own, Outcome):
            return own
        if self._sealed is None:
            return published(self._case.request, self._case, own, None)
        with ExitStack() as held:
            self._sealed.measure(self._case, baseline, held)
            with self._case.part("oracle"):
                baseline.release()
                sealed = self._sealed.judged(self._case)
        return published(self._case.request, self._case, own, sealed)

    def anew(self) -> Sessions:
        """Plan the same once more, with other inputs."""
        return Sessions(*self._given)

    def __enter__(self) -> Self:
        """Begin with nothing."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give the inputs' memory back; where the block failed a process may still be writing into it."""
        self._held.__exit__(kind, error, trace)


class Ahead:
    """Room for the inputs of a candidate that is right and waits to be timed, as a context manager that gives it back."""

    def __init__(self, room: Room, share: float, sessions: Sessions) -> None:
        """Take none yet: who waits to be checked needs none."""
        self._room, self._share, self._sessions = room, share, sessions
        self._held = ExitStack()
        self._was_asked = False
        self.has_room = False

    def prepare(self) -> None:
        """Have the inputs made, if there is room for them."""
        if not self._was_asked:
            self._was_asked, self.has_room = True, self._held.enter_context(self._room.taken(self._share))
        if self.has_room:
            self._sessions.prepare()

    def __enter__(self) -> Self:
        """Begin with nothing."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give the room back."""
        self._held.__exit__(kind, error, trace)


def _wait(cancel: int, seconds: float) -> None:
    """Pass so many seconds, or as many as the evaluation is wanted for: who asks the baselines next finds that out."""
    select.select([cancel] if cancel >= 0 else [], [], [], seconds)
