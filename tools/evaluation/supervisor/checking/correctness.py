"""Checks a candidate: makes inputs, feeds a runner call by call, has the oracle judge the bytes, and names the verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, zip_longest
from typing import Literal

from pydantic import ValidationError

from tools.cores import usable_cores
from tools.errors import MachineError
from tools.evaluation.processes.allowance import Allowance
from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking import weakening
from tools.evaluation.supervisor.checking.call_plan import Stage
from tools.evaluation.supervisor.checking.device_store_client import DeviceStoreClient, device_stores, held, shared
from tools.evaluation.supervisor.checking.pace import Pace
from tools.evaluation.supervisor.checking.runner_client import RunError, RunnerClient
from tools.evaluation.wire.calls import CallPlan
from tools.evaluation.wire.channel import Load
from tools.evaluation.wire.jobs.inputs import InputsAnswer, InputsJob
from tools.evaluation.wire.jobs.oracle import CallVerdict, OracleAnswer, OracleJob
from tools.evaluation.wire.jobs.runner import RunnerJob
from tools.evaluation.wire.lead_in import flush_bytes
from tools.evaluation.wire.tensor_store import HostStore
from tools.records import Correctness, HardwareSheet, OutputError, Problem, Verdict, WrongOutput

_Size = tuple[Problem, HostStore | DeviceStoreClient, CallPlan, tuple[bool, ...]]

QUICK_S = 0.5
"""Seconds for which sizes are checked in turn without a GPU: what takes longer is worth runners of its own on further cores."""
SHOWN = 3
"""Wrong outputs of which elements are shown."""
ORACLE_S = 600.0
"""How long a trusted process may take; the problem's own code decides that, not the candidate. Without a GPU of its own time."""

ALONE = (
    "The interpreter is too slow for the problem's only size, so it could not be judged: "
    "give the file SMALL_SIZES (docs/evaluation.md), use a GPU, or raise --timeout."
)


@dataclass
class Outcome:
    """What the check found."""

    verdict: Verdict
    rule: str | None = None
    correctness: Correctness | None = None
    notes: list[str] = field(default_factory=list)
    log: str = ""
    heard: tuple[tuple[str, str], ...] = ()
    """What a call really ran, by the runner's word: (kind, name)."""
    by_chance: bool = False
    """Whether a busy host may have made it so: found again, it is the candidate's."""
    slowed: tuple[str, ...] = ()
    """Baselines that were slower beside the candidate, where that is all it says: one of them must be steady by itself, too."""


@dataclass(frozen=True)
class _Sat:
    """A size whose calls were made, or as many as there was time for."""

    log: str
    made: tuple[bool, ...]
    """By call of the plan: whether its outputs are there to be judged."""
    note: str = ""
    """What was not judged."""
    ended: bool = False
    """Whether its runner is of no more use."""


class Check:
    """The check of one candidate at several sizes."""

    def __init__(
        self,
        workers: WorkerPool,
        problems: tuple[Problem, ...],
        call_plans: tuple[CallPlan, ...],
        cancel: int,
        *,
        listens: bool = True,
        stage: Stage = "search",
        part: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        """Plan to run `call_plans`, one for each of `problems`; where it `listens`, one more call says what really ran.

        `part` takes down how long what it holds took.
        """
        self._part = part
        self._workers = workers
        self._problems = problems
        self._call_plans = call_plans
        self._cancel = cancel
        self._gpu = workers.device is not None
        self._cache = ""
        self._left_out: tuple[str, ...] = ()
        self._listens = listens
        self._stage: Stage = stage
        self._heard: tuple[tuple[str, str], ...] = ()
        self._last: HostStore | DeviceStoreClient | None = None
        """Of the size that is checked last, whose runner is listened to."""

    @property
    def _device(self) -> str:
        return "cuda" if self._gpu else "cpu"

    def run(self, source: str, sheet: HardwareSheet, timeout_s: float, cache: str = "") -> Outcome:
        """Check `source`, of which `cache` is compiled.

        On a device the limit is of the clock, and of all sizes together; without one each size has its share of own time.
        """
        self._cache = cache
        with self._tapes(sheet) as stores:
            with self._part("inputs"):
                usable = self._make_inputs(stores)
            if isinstance(usable, Outcome):
                return usable
            sizes = list(zip(self._problems, stores, self._call_plans, usable, strict=True))
            sizes = sizes if self._gpu else [*sizes[1:], sizes[0]]
            self._last = sizes[-1][1]
            with self._part("calls"):
                sat = self._in_turn(partial(self._sit, source, sheet, timeout_s, time.monotonic() + timeout_s), sizes)
            failed = next((outcome for outcome in sat if isinstance(outcome, Outcome)), None)
            if failed:
                return failed
            done = [one for one in sat if isinstance(one, _Sat)]
            done = done if self._gpu else [done[-1], *done[:-1]]
            with self._part("oracle"):
                outcome = self._judge(stores, tuple(one.made for one in done))
            outcome.heard = self._heard
            outcome.log = next((one.log for one in done if one.log), "")
            outcome.notes = [*(one.note for one in done if one.note), *outcome.notes]
            return outcome

    def _in_turn(self, sit: Callable[..., _Sat | Outcome], sizes: list[_Size]) -> list[_Sat | Outcome]:
        """Check the sizes one after the other in one runner, up to one that fails: starting a runner takes longer than most calls.

        Where the interpreter turns out to be slow, what is left is checked side by side: it uses one core.
        """
        sat: list[_Sat | Outcome] = []
        began = time.monotonic()
        with self._workers.runner(gpu=self._gpu, cancel=self._cancel) as runner:
            for size in sizes:
                last = sit(*size, runner)
                sat.append(last)
                if isinstance(last, Outcome):
                    return sat
                if last.ended or (not self._gpu and time.monotonic() - began > QUICK_S):
                    break
        return sat + _side_by_side(sit, sizes[len(sat) :])

    def _flush_bytes(self, sheet: HardwareSheet) -> int:
        return flush_bytes(sheet) if self._gpu else 0

    @contextmanager
    def _tapes(self, sheet: HardwareSheet) -> Iterator[list[HostStore | DeviceStoreClient]]:
        with ExitStack() as stack:
            planned = zip(self._problems, self._call_plans, strict=True)
            yield [stack.enter_context(held(self._workers, problem, call_plan, sheet, self._cancel)) for problem, call_plan in planned]

    def _make_inputs(self, stores: list[HostStore | DeviceStoreClient]) -> tuple[tuple[bool, ...], ...] | Outcome:
        job = InputsJob(call_plans=self._call_plans, device=self._device, device_stores=device_stores(stores))
        done = self._trusted("inputs", job.model_dump_json(), stores)
        try:
            answer = InputsAnswer.model_validate_json(done[0])
        except ValidationError:
            return _unjudged("The inputs could not be made", done[1])
        self._left_out = answer.notes
        return answer.usable

    def _trusted(self, phase: str, job: str, stores: list[HostStore | DeviceStoreClient]) -> tuple[bytes, str]:
        limit = time.monotonic() + ORACLE_S if self._gpu else Allowance(ORACLE_S)
        try:
            stored = any(device_stores(stores))
            done = self._workers.ask(phase, job.encode(), shared(stores), limit, self._cancel, problem=self._problems[0], stored=stored)
        except DeadlineError:
            raise MachineError(f"The {phase} process took longer than {ORACLE_S:.0f} s.", "Give the problem smaller sizes.") from None
        return done.answer, f"{done.log.strip()} ({done.ending})"

    def _sit(
        self,
        source: str,
        sheet: HardwareSheet,
        timeout_s: float,
        deadline: float,
        problem: Problem,
        store: HostStore | DeviceStoreClient,
        call_plan: CallPlan,
        use: tuple[bool, ...],
        runner: Child | None = None,
    ) -> _Sat | Outcome:
        """Check one size; return what was made of it, or how it failed."""
        job = RunnerJob(
            abi=problem.abi,
            source=weakening.source(source, problem, self._workers.off),
            device=self._device,
            sheet=sheet,
            flush_bytes=self._flush_bytes(sheet),
            precision=problem.policy.precision,
            cache=self._cache,
        )
        pace = None if self._gpu else self._pace(problem, timeout_s)
        try:
            return self._feed(job, store, call_plan, use, deadline, pace, runner)
        except RunError as failure:
            if pace is not None and failure.verdict is Verdict.TIMED_OUT and not pace.slept:
                if pace.was_cut:
                    return _Sat(failure.log, (False,) * len(use), pace.note(sum(use)), ended=True)
                if len(self._problems) == 1:
                    return Outcome(Verdict.INFRASTRUCTURE, notes=[f"{ALONE} At {size_of(problem)}: {failure.reason}"], log=failure.log)
            return Outcome(failure.verdict, failure.rule, None, [f"At {size_of(problem)}: {failure.reason}"], failure.log)

    def _pace(self, problem: Problem, timeout_s: float) -> Pace:
        limit_s = weakening.deadline(timeout_s, self._workers.off)
        return Pace(limit_s, self._stage, cut=not problem.sizes and len(self._problems) > 1)

    def _feed(
        self,
        job: RunnerJob,
        store: HostStore | DeviceStoreClient,
        call_plan: CallPlan,
        use: tuple[bool, ...],
        deadline: float,
        pace: Pace | None,
        child: Child | None,
    ) -> _Sat:
        """Feed one runner the calls of a plan and keep its outputs."""
        allowance = pace.allowance if pace else None
        made = [False] * len(use)
        with RunnerClient(self._workers, job, store, deadline, self._cancel, gpu=self._gpu, runner=child, allowance=allowance) as runner:
            for number, call in enumerate(call_plan.calls):
                if not use[number]:
                    continue
                if pace and not pace.has_room():
                    break
                for run in range(call.slots):
                    load = Load.ALL | (Load.POISON_B if (number + run) % 2 else Load(0)) | (Load.SHIFTED if call.shifted else Load(0))
                    runner.give(number)
                    runner.call(load)
                    runner.collect(number, run)
                made[number] = True
                if pace:
                    pace.made()
            # one that hangs when it is listened to must not cost the next size: it is the last of its runner
            if self._listens and store is self._last:
                self._heard = runner.listen()
            return _Sat(runner.log, tuple(made), pace.note(sum(use)) if pace else "")

    def _judge(self, stores: list[HostStore | DeviceStoreClient], usable: tuple[tuple[bool, ...], ...]) -> Outcome:
        skip = tuple(tuple(not use for use in uses) for uses in usable)
        job = OracleJob(call_plans=self._call_plans, skip=skip, device=self._device, device_stores=device_stores(stores))
        data, log = self._trusted("oracle", job.model_dump_json(), stores)
        try:
            answer = OracleAnswer.model_validate_json(data)
        except ValidationError:
            return _unjudged("The oracle could not judge the outputs", log)
        if not any(call.judged for call in answer.calls):
            return _unjudged("No call could be judged", "; ".join(answer.notes))
        return self._conclude(weakening.judged(answer, self._workers.off))

    def _conclude(self, answer: OracleAnswer) -> Outcome:
        sizes = tuple(dict.fromkeys(size_of(self._problems[call.call_plan]) for call in answer.calls))
        executor: Literal["gpu", "interpreter"] = "gpu" if self._gpu else "interpreter"
        outputs, shown = worst_errors(answer.calls), wrong_outputs(self._problems, answer.calls)
        judged = sum(call.judged for call in answer.calls)
        correctness = Correctness(outputs=outputs, calls=judged, sizes=sizes, executor=executor, wrong=shown)
        notes = [*self._left_out, *answer.notes]
        unstable = next((call for call in answer.calls if not call.repeat_agrees), None)
        if unstable is not None:
            where = f"{size_of(self._problems[unstable.call_plan])}, inputs “{unstable.group}”"
            reason = f"Two runs on the same inputs, with different contents of unwritten memory, disagree ({where})."
            return Outcome(Verdict.UNSTABLE, None, correctness, [reason, *notes])
        wrong = [(call, error) for call in answer.calls for error in call.outputs if not error.passed]
        if not wrong:
            return Outcome(Verdict.PASS, None, correctness, notes)
        reasons = [self._complaint(call, error) for call, error in wrong[:3]]
        share = self._share({id(call) for call, _ in wrong}, answer)
        return Outcome(Verdict.WRONG, None, correctness, [*reasons, share, *notes])

    def _share(self, wrong: set[int], answer: OracleAnswer) -> str:
        """Say how many calls are wrong, and at which sizes."""
        at = dict.fromkeys(size_of(self._problems[call.call_plan]) for call in answer.calls if id(call) in wrong)
        right = dict.fromkeys(size for call in answer.calls if (size := size_of(self._problems[call.call_plan])) not in at)
        elsewhere = f"; right at {'; '.join(right)}" if right else ""
        return f"{len(wrong)} of {len(answer.calls)} calls are wrong: at {'; '.join(at)}{elsewhere}."

    def _complaint(self, call: CallVerdict, error: OutputError) -> str:
        return complaint(error, f"{size_of(self._problems[call.call_plan])}, inputs “{call.group}”")


def complaint(error: OutputError, where: str) -> str:
    """Say how wrong an output is at a size, and how wrong it may be."""
    place = f"{error.output} at {where}"
    if error.limit_relative_l2 == 0:
        return f"{place}: {error.relative_l2:.2%} of the elements differ, and integers must be exact."
    return (
        f"{place}: relative L2 error {error.relative_l2:.3g} (limit {error.limit_relative_l2:.3g}), "
        f"worst row {error.worst_row:.3g} (limit {error.limit_worst_row:.3g})."
    )


def _side_by_side(sit: Callable[..., _Sat | Outcome], sizes: list[_Size]) -> list[_Sat | Outcome]:
    """Check each size in a runner of its own."""
    with ThreadPoolExecutor(usable_cores(), thread_name_prefix="call_plan") as threads:
        return list(threads.map(lambda size: sit(*size), sizes))


def size_of(problem: Problem) -> str:
    """Read as `rows=37, columns=129`, or `as written`."""
    return ", ".join(f"{name}={size}" for name, size in problem.sizes.items()) or "as written"


def worst_errors(calls: tuple[CallVerdict, ...]) -> tuple[OutputError, ...]:
    """Keep, for each output, the errors of the call that comes closest to its limits or exceeds them most."""
    worst: dict[str, OutputError] = {}
    for call in calls:
        for error in call.outputs:
            held = worst.get(error.output)
            if held is None or error.severity > held.severity:
                worst[error.output] = error
    return tuple(worst.values())


def wrong_outputs(problems: tuple[Problem, ...], calls: tuple[CallVerdict, ...]) -> tuple[WrongOutput, ...]:
    """Choose what is shown of wrong calls: one output of a size before a second one of any."""
    found: dict[str, list[WrongOutput]] = {}
    for call in calls:
        size = size_of(problems[call.call_plan])
        found.setdefault(size, []).extend(one.model_copy(update={"size": size, "inputs": call.group}) for one in call.wrong)
    turns = (one for turn in zip_longest(*found.values()) for one in turn if one is not None)
    return tuple(islice(turns, SHOWN))


def _unjudged(what: str, log: str) -> Outcome:
    last = log.strip().splitlines()[-1:] or ["no reason given"]
    return Outcome(Verdict.INFRASTRUCTURE, notes=[f"{what}: {last[0][:400]}"], log=log[-4000:])
