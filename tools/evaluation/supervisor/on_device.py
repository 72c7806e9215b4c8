"""What happens on one GPU: candidates checked side by side and timed alone, baselines, counters, and the device's health."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from threading import BoundedSemaphore, Lock
from typing import Any

from tools.cores import usable_cores
from tools.errors import MachineError
from tools.evaluation.processes.device_lock import DeviceLock, Stay
from tools.evaluation.processes.device_turn import turn_on
from tools.evaluation.processes.room import Room
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.admission_client import Admissions
from tools.evaluation.supervisor.case import Case, Steps
from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.counters_client import CountersClient
from tools.evaluation.supervisor.health import Health, sick
from tools.evaluation.supervisor.problem_room import VAST, ProblemRoom, refuse_too_large, share_of
from tools.evaluation.supervisor.timed.baseline_client import BaselineCache, BaselineProcess
from tools.evaluation.supervisor.timed.calibrating import calibration_us
from tools.evaluation.supervisor.timed.sealed_session import STAGES
from tools.evaluation.supervisor.timed.sessions import Ahead, Sessions
from tools.evaluation.supervisor.timed.statistics import sample
from tools.evaluation.supervisor.timed.timing import time_baselines
from tools.evaluation.wire.size_classes import LARGE_BYTES
from tools.hardware.detect import refuse_other_target
from tools.profiling.ncu import Counters
from tools.records import Admission, Baselines, EvaluationRequest, HardwareSheet, Problem, Tier, Timing, Verdict, content_hash

_SIDE_BY_SIDE = 8
"""Candidates checked, and baselines started, on one device at the same time."""
_ROOM = 1 / 24
"""Share of the device's memory that the tensors of their problems may need together: oracles take up to eight times as much, and calls
that are kept and the runners' own two to four times."""
_AHEAD = 1 / 16
"""Share of its memory for inputs of candidates that wait to be timed, and for what the oracle has to judge when they were."""
_FEW = max(2, usable_cores() // 4)
"""Baselines started, and problems examined, at the same time: each takes a core or two for seconds, and the first should be there early."""
_BESIDE = 64
"""Problems examined and references started at once, at most: more than a bench has in flight."""
_EACH = 2
"""Runners that wait with CUDA started, for each candidate in hand: one to check it and one to time it."""


class OnDevice:
    """One GPU and who may use it when; every view of a pool shares it, each with a view of its workers."""

    def __init__(self, workers: WorkerPool, *, max_autotune: bool, compile_s: float) -> None:
        """Take `workers`' device; torch.compile is waited for `compile_s` seconds."""
        assert workers.device is not None
        # what waits for others in here must not take the place of what they wait for
        self._beside = ThreadPoolExecutor(_BESIDE, thread_name_prefix="beside")
        self._lock = DeviceLock(_SIDE_BY_SIDE, _ROOM, turn_on(workers.device))
        self._ahead = Room(_AHEAD)
        self._counts, self._in_hand = Lock(), 0
        """Candidates that are checked, or wait for that."""
        self._starts, self._examinations = BoundedSemaphore(_FEW), BoundedSemaphore(_FEW)
        self._firsts: dict[str, Lock] = {}
        """By problem: held by the candidate that waits for its first baselines."""
        self._baselines = BaselineCache(workers, max_autotune=max_autotune, compile_s=compile_s)
        self._room = ProblemRoom(self._lock, self._baselines)
        self._passed: set[str] = set()
        """Candidates that have passed once."""
        self._counting = CountersClient()
        self._health = Health(workers.device)

    def demand(self, workers: WorkerPool, target: HardwareSheet) -> None:
        """Refuse a device that is quarantined, and a target that it is not."""
        self._health.demand()
        refuse_other_target(workers.title, target)

    def judge(
        self, workers: WorkerPool, case: Case, check: Callable[[], Outcome], cache: str, cancel: int
    ) -> tuple[Outcome, dict[str, Any]]:
        """Judge beside others as far as the device's memory goes; a failure on a device that is not well is not the candidate's."""
        refuse_too_large(case.request.problem, case.request.target)
        work = partial(self._judged, workers, case, check, cache, cancel)
        return self._room.judging(workers, case, work)

    def _judged(
        self, workers: WorkerPool, case: Case, check: Callable[[], Outcome], cache: str, cancel: int
    ) -> tuple[Outcome, dict[str, Any]]:
        """Check and start the baselines beside others, then time alone."""
        figures: dict[str, Any] = {}
        sessions = Sessions(workers, case, cancel, cache)
        share = sessions.nbytes / (case.request.target.memory_gb * 1e9)
        with self._beginning(case, cancel) as begun, Ahead(self._ahead, share, sessions) as ahead, sessions:
            outcome = self.check(workers, case, check, ahead.prepare)
            if outcome.verdict is Verdict.PASS:
                found = self._timed(workers, case, sessions, begun(), cancel, is_ahead=ahead.has_room)
                outcome, figures = (found, {}) if isinstance(found, Outcome) else (outcome, {"timing": found})
        if outcome.verdict is Verdict.PASS:
            self._passed.add(_passing(case.request))
        figures["gpu_seconds"] = sum(case.seconds.get(phase, 0.0) for phase in ("check", "inputs", "time", "oracle"))
        return outcome, figures

    def calibrate(self, workers: WorkerPool, cancel: int) -> float:
        """Time the calibration kernel with nobody else there, microseconds."""
        self._health.demand()
        with self._lock.alone():
            self._settle(workers)
            return calibration_us(workers, "cuda", cancel)

    def check(self, workers: WorkerPool, case: Case, check: Callable[[], Outcome], prepare: Callable[[], None] | None = None) -> Outcome:
        """Check beside other candidates, and `prepare` the timing of what passes; what others may have failed is done again alone."""

        def work(stay: Stay) -> Outcome:
            with case.phase("check", after=stay):
                self._refill(workers, self._in_hand)
                outcome = check()
            if outcome.verdict is Verdict.PASS and prepare is not None:
                with case.phase("inputs"):
                    prepare()
            return outcome

        share = share_of(sizes_on_device(case.request), case.request.target)
        with self._counted():
            return self._lock.beside(share, work, lambda outcome: outcome.verdict not in (Verdict.PASS, Verdict.WRONG, Verdict.CHEATED))

    def _refill(self, workers: WorkerPool, candidates: int) -> None:
        """Have runners made for so many; nobody may be timed now."""
        workers.spare_runners.refill(min(workers.spares, _EACH * candidates))

    def _settle(self, workers: WorkerPool, runners: int = 0) -> None:
        """Wait until none is being made of the `runners` that are needed now, and where others wait to be alone of theirs and the next."""
        workers.spare_runners.settle(runners + _EACH * self._lock.in_line)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._counts:
            self._in_hand += 1
        try:
            yield
        finally:
            with self._counts:
                self._in_hand -= 1

    def examined(self, workers: WorkerPool, case: Case, outcome: Outcome, cancel: int) -> Outcome:
        """Look whether the device is well after a candidate; where it is not, a failure says nothing about the candidate."""
        failed = outcome.verdict in (Verdict.CRASHED, Verdict.TIMED_OUT)
        fault = self._health.examine()
        if failed and not fault:
            with self._lock.shared():
                fault = sick(workers, case.request.problem, cancel)
            self._health.quarantine(fault)
        if not fault:
            return outcome
        case.notes.append(f"GPU {workers.device} is quarantined after this candidate: {fault}.")
        if not failed:
            return outcome
        notes = [f"It ended as {outcome.verdict}, but the device was not well afterwards.", *outcome.notes]
        return replace(outcome, verdict=Verdict.INFRASTRUCTURE, notes=notes)

    def baselines(
        self, workers: WorkerPool, admissions: Admissions, problem: Problem, target: HardwareSheet, steps: Steps, cancel: int
    ) -> Baselines:
        """Time the reference with nobody else there; the problem is examined, and the reference compiled, beside whoever is timed."""
        refuse_too_large(problem, target)

        def examine() -> Admission:
            with steps.step("admission"), self._examinations:
                return admissions.admission(problem, cancel, self._lock.yielding)

        examining = self._beside.submit(examine)
        try:
            work = partial(self._timed_baselines, workers, problem, target, steps, cancel)
            baseline, times = self._room.beginning(workers, problem, target, steps, work)
        finally:
            wait([examining])
        return Baselines(
            tier=Tier.IN_PROCESS,
            samples={name: sample(values) for name, values in times.items()},
            device=workers.title or target.title,
            notes=tuple(baseline.notes),
            admission=examining.result(),
            steps=steps.found,
            configurations=baseline.configurations,
        )

    def _timed_baselines(
        self, workers: WorkerPool, problem: Problem, target: HardwareSheet, steps: Steps, cancel: int
    ) -> tuple[BaselineProcess, dict[str, list[float]]]:
        made = None
        try:
            if self._baselines.needs(problem, "search"):
                # those that a candidate waits for to be timed, above all to be confirmed, stand in no line
                with steps.step("baseline start"), self._starts:
                    made = self._start(problem, target, cancel)
                with self._lock.shared():
                    # for the first candidate, while a compiler works
                    self._refill(workers, 1 + self._in_hand)
                with steps.step("baseline compile"):
                    made.await_compiled()
            with self._lock.alone() as stay, self._resting(), steps.step("baseline timing"):
                steps.waited("baseline queue", stay.waited_s)
                self._settle(workers)
                baseline = self._baselines.baseline(problem, target, cancel, made)
                return baseline, time_baselines(baseline, "search")
        finally:
            self._baselines.let_go(made)

    def counters(self, workers: WorkerPool, request: EvaluationRequest, cancel: int) -> Counters:
        """Read the hardware counters of one call of a candidate, nobody else being there."""
        with self._lock.alone():
            self._settle(workers)
            return self._counting.count(workers, request, cancel)

    def close(self) -> None:
        """End the baseline processes that are kept."""
        self._beside.shutdown()
        with self._lock.alone():
            self._baselines.clear()

    @contextmanager
    def _beginning(self, case: Case, cancel: int) -> Iterator[Callable[[], BaselineProcess | None]]:
        """Give what starts the baselines that a candidate is timed with, unless they are there.

        Where the candidate has passed before they are started at once, and compile while it is checked again, unless they take too much
        of the device's memory for that.
        """
        request = case.request
        if not self._baselines.needs(request.problem, request.stage):
            yield lambda: None
            return
        is_vast = share_of([request.problem], request.target) > VAST
        if is_vast and request.stage == "confirm":
            # another takes its place, and there may be no room for both
            with self._lock.alone():
                self._baselines.drop(request.problem)
        starting: list[Future[BaselineProcess]] = []

        def start() -> Future[BaselineProcess]:
            if not starting:
                starting.append(self._beside.submit(self._start, request.problem, request.target, cancel))
            return starting[0]

        def begun() -> BaselineProcess | None:
            with case.phase("baselines"):
                if request.stage == "confirm":
                    return _compiled(start())
                self._first(request, start, cancel)
                return None

        if _passing(request) in self._passed and not is_vast:
            start()
        try:
            yield begun
        finally:
            wait(starting)
            for one in starting:
                if one.exception() is None:
                    self._baselines.let_go(one.result())

    def _first(self, request: EvaluationRequest, start: Callable[[], Future[BaselineProcess]], cancel: int) -> None:
        """Have a problem's baselines kept for all who are timed in a search; those that another candidate has waited for will do."""
        with self._firsts.setdefault(request.problem.id, Lock()):
            if self._baselines.needs(request.problem, request.stage):
                made = _compiled(start())
                with self._lock.alone(), self._resting():
                    self._baselines.baseline(request.problem, request.target, cancel, made)

    def _start(self, problem: Problem, target: HardwareSheet, cancel: int) -> BaselineProcess:
        """Start a baseline process that rests while anybody is timed; what it compiles it compiles meanwhile, too."""
        try:
            return self._baselines.started(problem, target, cancel, self._lock.door(share_of([problem], target)))
        except MachineError:
            # what others had on the device may have failed it
            with self._lock.alone():
                return self._baselines.started(problem, target, cancel)

    def _timed(
        self, workers: WorkerPool, case: Case, sessions: Sessions, made: BaselineProcess | None, cancel: int, *, is_ahead: bool
    ) -> Outcome | Timing:
        """Time alone; what the oracle has to judge waits for others who compute, where there is room for it."""
        if not is_ahead:
            with self._timing(workers, case, made, cancel) as baseline:
                return sessions.at_once(baseline)
        try:
            with ExitStack() as stack:
                with self._timing(workers, case, made, cancel) as baseline:
                    stack.enter_context(self._lock.following())
                    sessions.measure(baseline)
                case.timed()
                share = share_of([case.request.problem], case.request.target)
                with self._lock.shared(share, is_brief=True) as stay, case.phase("oracle", after=stay):
                    if not self._lock.in_line:
                        # while nobody is in a hurry, for those who come next, too
                        self._refill(workers, 1 + self._in_hand)
                    return sessions.judged()
        except MachineError:
            # what others had on the device may have failed it
            with self._timing(workers, case, None, cancel) as baseline:
                return sessions.anew().at_once(baseline)

    @contextmanager
    def _timing(self, workers: WorkerPool, case: Case, made: BaselineProcess | None, cancel: int) -> Iterator[BaselineProcess]:
        """Be alone on the device, with the baselines."""
        with self._lock.alone() as stay, case.phase("time", after=stay), self._resting():
            with case.part("settle"):
                self._settle(workers, len(STAGES & {case.request.stage}) + 1)
                baseline = self._baselines.baseline(case.request.problem, case.request.target, cancel, made)
            case.notes += baseline.notes
            yield baseline

    @contextmanager
    def _resting(self) -> Iterator[None]:
        """Leave the baseline processes waiting for the next candidate, or end them where something failed."""
        try:
            yield
        except BaseException:
            self._baselines.clear()
            raise
        self._baselines.rest()


def _compiled(starting: Future[BaselineProcess]) -> BaselineProcess:
    made = starting.result()
    made.await_compiled()
    return made


def _passing(request: EvaluationRequest) -> str:
    return content_hash(request.problem.id, request.source)


def sizes_on_device(request: EvaluationRequest) -> tuple[Problem, ...]:
    """All sizes; in a search a large problem as written is judged by its timed calls alone."""
    large = request.problem.abi.nbytes >= LARGE_BYTES
    if large and request.stage == "search" and request.variants:
        return request.variants
    return (*request.variants, request.problem)
