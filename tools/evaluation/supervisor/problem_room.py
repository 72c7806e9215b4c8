"""How much of a device's memory problems need, and which of them may be worked on side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from tools.errors import MachineError, UnjudgeableError
from tools.evaluation.processes.device_lock import DeviceLock
from tools.evaluation.processes.tensor_room import TensorRoom, ran_out
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.case import Case, Steps
from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.checking.device_store_client import give_way
from tools.evaluation.supervisor.timed.baseline_client import BaselineCache
from tools.records import HardwareSheet, Problem, Verdict

T = TypeVar("T")
Judged: TypeAlias = tuple[Outcome, dict[str, Any]]

MOST_OF_MEMORY = 0.25
"""Share of the device's memory that the tensors of a problem may take: beyond it the oracle's copies cannot fit."""
VAST = 1 / 16
"""Share of it beyond which a problem's baselines and a candidate's runner are not there at the same time unless they must."""
_TENSORS = 0.6
"""Share of its memory for all tensors together: the rest is what CUDA takes for each process that is kept."""
_JUDGED, _BEGUN = 10.0, 3.5
"""How many times a problem's tensors a candidate needs that is judged, and its baselines while they are started and compiled: oracles,
calls that are kept, the runners' and both baseline processes' own."""
_FAILED = Verdict.INFRASTRUCTURE, Verdict.CRASHED


@dataclass(frozen=True)
class _Room:
    """What one asks for."""

    problem: Problem
    target: HardwareSheet
    times: float
    """So many times the problem's tensors."""
    waited: Callable[[float], None]
    """To be told how long was waited for it, in seconds."""

    @property
    def share(self) -> float:
        return self.times * share_of([self.problem], self.target)


class ProblemRoom:
    """Lets in whose tensors fit beside those that are there."""

    def __init__(self, lock: DeviceLock, baselines: BaselineCache) -> None:
        """Count what is held for the problems whose `baselines` are kept, too; these are ended with nobody else on the device."""
        self._lock, self._baselines = lock, baselines
        self._tensors = TensorRoom(_TENSORS)

    def judging(self, workers: WorkerPool, case: Case, work: Callable[[], Judged]) -> Judged:
        """Have a candidate judged, once more where there was too little memory: alone, then through the host's memory."""
        room = _Room(case.request.problem, case.request.target, _JUDGED, case.waited)
        return self._beside(workers, room, work, lambda found: _starved(found[0]), lambda found: found[0].verdict is Verdict.INFRASTRUCTURE)

    def beginning(self, workers: WorkerPool, problem: Problem, target: HardwareSheet, steps: Steps, work: Callable[[], T]) -> T:
        """Have the baselines of a problem started and timed, once more where there was too little memory for them beside others."""
        room = _Room(problem, target, _BEGUN, partial(steps.waited, "baseline room"))
        return self._beside(workers, room, work, lambda _: False, lambda _: False)

    def _beside(
        self, workers: WorkerPool, room: _Room, work: Callable[[], T], doubted: Callable[[T], bool], innocent: Callable[[T], bool]
    ) -> T:
        came = time.monotonic()

        def in_room() -> T:
            room.waited(time.monotonic() - came)
            self._make_room(room)
            if room.share > _TENSORS:
                # nobody else has tensors there now, and CUDA alone takes half a gigabyte for every process that waits
                with workers.keeping(room.problem):
                    workers.rest()
            return work()

        beside = partial(self._tensors.beside, room.share, in_room, clear=partial(self._clear, workers), doubted=doubted)
        try:
            found = beside()
        except MachineError as error:
            if not (ran_out(error.what) and self._through_host(workers, room.problem)):
                raise
        else:
            # a candidate that takes too much by itself has no say in where tensors are
            if not (doubted(found) and innocent(found) and self._through_host(workers, room.problem)):
                return found
        return beside()

    def _through_host(self, workers: WorkerPool, problem: Problem) -> bool:
        """Have a problem's tensors pass through the host's memory from now on, if that is new; baselines that begin anew say so."""
        if not give_way(workers, problem):
            return False
        with self._lock.alone():
            self._baselines.drop(problem)
        return True

    def _make_room(self, room: _Room) -> None:
        """Have the kept baselines of other problems make room for one that has come."""
        left = max(0.0, self._tensors.left)
        if self._baselines.share(room.target, besides=room.problem) > left:
            with self._lock.alone():
                self._baselines.shrink(left, room.target, besides=room.problem)

    def _clear(self, workers: WorkerPool) -> None:
        """End what is kept of other problems."""
        with self._lock.alone():
            self._baselines.clear()
        workers.rest()


def _starved(outcome: Outcome) -> bool:
    """Whether a candidate failed for want of memory, which others may have taken."""
    return outcome.verdict in _FAILED and ran_out(*outcome.notes, outcome.log)


def share_of(problems: Sequence[Problem], target: HardwareSheet) -> float:
    """Say what part of the device's memory the tensors of the largest of some problems take."""
    return max(problem.abi.nbytes for problem in problems) / (target.memory_gb * 1e9)


def refuse_too_large(problem: Problem, target: HardwareSheet) -> None:
    """Refuse a problem that cannot be judged in the device's memory, before anything of it is started: UnjudgeableError."""
    nbytes = problem.abi.nbytes
    if nbytes > MOST_OF_MEMORY * target.memory_gb * 1e9:
        what = f"{problem.name} has {nbytes / 1e9:.0f} GB of tensors, more than a quarter of the {target.memory_gb:g} GB of {target.title}"
        raise UnjudgeableError(
            f"{what}: judging it takes float64 copies, a reference's outputs and a candidate's beside them.",
            "Choose smaller sizes in its file.",
        )
