"""Times a candidate that is right, call by call beside the baselines, with secret changes of the inputs and validated outputs."""

from __future__ import annotations

import random
import secrets
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack

from pydantic import ValidationError

from tools.errors import MachineError
from tools.evaluation.processes.tensor_room import ran_out
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking.call_plan import Stage
from tools.evaluation.supervisor.checking.correctness import ORACLE_S, Outcome, size_of
from tools.evaluation.supervisor.checking.runner_client import IN_FLIGHT, RunError, RunnerClient
from tools.evaluation.supervisor.timed import plausibility
from tools.evaluation.supervisor.timed.baseline_client import BaselineProcess
from tools.evaluation.supervisor.timed.chains import Chains, ChainSession
from tools.evaluation.supervisor.timed.measured import Measured
from tools.evaluation.supervisor.timed.statistics import NOISE_SEEN, enough, repetitions, sample, speedup
from tools.evaluation.supervisor.timed.timed_calls import not_judged, wrong_calls
from tools.evaluation.supervisor.timed.timing_store import TimingStore
from tools.evaluation.wire.chain_board import ChainBoard
from tools.evaluation.wire.channel import Load, Reply
from tools.evaluation.wire.defences import Defence
from tools.evaluation.wire.jobs.oracle import OracleAnswer, OracleJob
from tools.evaluation.wire.jobs.runner import RunnerJob
from tools.evaluation.wire.launch_plan import LaunchPlan
from tools.evaluation.wire.lead_in import flush_bytes
from tools.evaluation.wire.size_classes import LARGE_BYTES, MIDDLE_BYTES
from tools.evaluation.wire.source_text import declares_packing
from tools.profiling.nvml import NvmlSampler
from tools.records import HardwareSheet, Packing, Problem, Seeds, Tier, Timing, Verdict

_VALIDATED = {"search": 3, "confirm": 6}
_VALIDATED_MIDDLE = {"search": 2, "confirm": 3}
_VALIDATED_LARGE = 2
"""Timed calls whose outputs are judged: the last, and others that nobody knows before."""
_CHAINS = {"search": 3, "confirm": 5}
_IDLE_CALLS = 5
_CHAINS_VALIDATED, _CHAINS_VALIDATED_LARGE = 3, 1
"""Chains of which a call is judged; the second from `MIDDLE_BYTES` on."""
_PACKINGS = {"search": 5, "confirm": 15}
"""Times that a candidate packs its weights once more, where it has a step for that: nothing is ranked by it, so a median of few will do."""
_WARM_UPS = 3
_ALONE = (3, 9)
"""Calls of each baseline before the candidate's process and as many after it, at least and at most: a quarter of those beside it."""


def time_baselines(baseline: BaselineProcess, stage: Stage) -> dict[str, list[float]]:
    """Time the baselines by themselves, alternating."""
    most = repetitions(stage, min(baseline.call("eager") for _ in range(_WARM_UPS)))
    times = _by_themselves(baseline, min(most, NOISE_SEEN))
    more = _by_themselves(baseline, enough(stage, most, times) - len(times["eager"]))
    return {name: [*found, *more[name]] for name, found in times.items()}


def _by_themselves(baseline: BaselineProcess, count: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in baseline.names}
    for turn in range(count):
        for name in _there_and_back(baseline.names, turn):
            times[name].append(baseline.call(name))
    return times


class TimedSession:
    """One candidate against the baselines on one device."""

    def __init__(
        self,
        workers: WorkerPool,
        problem: Problem,
        sheet: HardwareSheet,
        stage: Stage,
        cancel: int,
        part: Callable[[str], AbstractContextManager[None]],
        plan: LaunchPlan | None = None,
        sealable: bool = False,
    ) -> None:
        """Plan to time a source, which may be `sealable`, or a `plan` alone; `part` takes down how long what it holds took."""
        self._given = workers, problem, sheet, stage, cancel, part, plan, sealable
        self._is_sealable, self._part, self._plan = sealable, part, plan
        self._is_sealed = plan is not None
        self._is_prepared = False
        self._measured: Measured | None = None
        self.notes: list[str] = []
        """What its reader should know: baselines that were unsteady, and what the oracle could not judge of its calls."""
        self.alone_before: dict[str, list[float]] = {}
        self.alone_after: dict[str, list[float]] = {}
        """The baselines by themselves, before the candidate's process was started and after it had ended, microseconds."""
        self._alone = _ALONE[0]
        self._workers = workers
        self._problem = problem
        self._sheet = sheet
        self._stage: Stage = stage
        self._cancel = cancel
        nbytes = problem.abi.nbytes
        self._is_small = nbytes < MIDDLE_BYTES
        self.is_large = nbytes >= LARGE_BYTES
        """Whether the device may have no room for another session's tensors."""
        # each passes through the host's memory
        self._validated = _VALIDATED[stage] if self._is_small else _VALIDATED_LARGE if self.is_large else _VALIDATED_MIDDLE[stage]
        self._chains_validated = _CHAINS_VALIDATED if self._is_small else _CHAINS_VALIDATED_LARGE
        # inputs change by chance that the candidate cannot foresee
        self._seed = secrets.randbits(128)
        self._chance = random.Random(self._seed)  # noqa: S311 - seeded by the system's generator
        self._held = TimingStore(workers, problem, self._validated + self._chains_validated, sheet, cancel)

    @property
    def seeds(self) -> Seeds:
        """Where its inputs came from, to be published when the evaluation has ended."""
        return self._held.first.published("time", size_of(self._problem), patches=self._seed)

    @property
    def nbytes(self) -> int:
        """What its tensors take from `prepare` on."""
        return self._problem.abi.nbytes * len(self._held.call_plan.calls)

    def another(self) -> TimedSession:
        """Make one like it, with inputs of its own."""
        return type(self)(*self._given)

    def prepare(self, held: ExitStack) -> None:
        """Have the base inputs made, unless they are there; `held` keeps them until it is left."""
        if not self._is_prepared:
            held.enter_context(self._held)
            self._held.fill()
            self._is_prepared = True

    def run(self, source: str, baseline: BaselineProcess, timeout_s: float, cache: str = "") -> Outcome | Timing:
        """Time `source`, of which `cache` is compiled, or the plan alone; an Outcome says that it may not have a time."""
        # nothing of the candidate is alive: neither the number of calls nor these times can be influenced
        with self._part("baselines alone"):
            just_before = baseline.alone.of(baseline.names)
            count = repetitions(
                self._stage, min(just_before["eager"] if just_before else [baseline.call("eager") for _ in range(_WARM_UPS)])
            )
            self._alone = max(_ALONE[0], min(_ALONE[1], count // 4))
            self.alone_before = just_before or _by_themselves(baseline, self._alone)
            count = enough(self._stage, count, self.alone_before)
        ChainBoard(baseline.board).wipe()
        try:
            with NvmlSampler(self._workers.device) as sampler:
                measured = self._beside(source, baseline, count, time.monotonic() + timeout_s, cache)
        except RunError as error:
            return Outcome(error.verdict, error.rule, None, [f"While it was timed: {error.reason}"], error.log)
        with self._part("baselines alone"):
            self.alone_after = baseline.alone.kept(_by_themselves(baseline, self._alone))
        measured.before, measured.after = self.alone_before, self.alone_after
        self._measured = measured
        return self._conclude(measured, sampler, self._plan)

    def look(self, baseline: BaselineProcess) -> dict[str, list[float]]:
        """Time the baselines by themselves once more, on a device that had nothing to do, as often as before the candidate's process."""
        for _ in range(_WARM_UPS):
            baseline.call("eager")
        return baseline.alone.kept(_by_themselves(baseline, self._alone))

    def _beside(self, source: str, baseline: BaselineProcess, count: int, deadline: float, cache: str) -> Measured:
        """Measure all that is measured while the candidate's process lives."""
        plan = self._plan
        job = RunnerJob(
            abi=self._problem.abi,
            source="" if plan is not None else source,
            plan=plan,
            device="cuda",
            sheet=self._sheet,
            flush_bytes=flush_bytes(self._sheet),
            precision=self._problem.policy.precision,
            cache=cache,
        )
        fixed = not any(spec.dynamic for spec in self._problem.abi.parameters)
        packs = fixed and (bool(plan.packing) if plan is not None else declares_packing(source))
        board = None if self._is_sealed else baseline.board
        with ExitStack() as running:
            with self._part("start"):
                client = RunnerClient(self._workers, job, self._held.store, deadline, self._cancel, gpu=True, board=board)
                runner = running.enter_context(client)
            measured = self._measure(runner, baseline, count, packs=packs)
            with self._part("end"):
                running.close()
        return measured

    def _measure(self, runner: RunnerClient, baseline: BaselineProcess, count: int, *, packs: bool) -> Measured:
        with self._part("first calls"):
            runner.give(0)
            for _ in range(_WARM_UPS):
                runner.call(Load.ALL)
            runner.collect(0)
        measured = Measured(baselines={name: [] for name in baseline.names})
        with self._part("calls"):
            self._time_calls(runner, baseline, count, measured)
        if not self._is_sealed:
            # there is no host code in a sealed process that could hide anything
            session = ChainSession(runner, baseline, self._problem.abi, self._chance, statistics.median(measured.event_us))
            with self._part("chains"):
                measured.idle_us = [self._idle_us(runner) for _ in range(_IDLE_CALLS)]
                measured.chains = session.measure(_CHAINS[self._stage], [1 + self._validated + k for k in range(self._chains_validated)])
        # last: whatever it leaves behind is in no call that was timed or judged
        measured.packing_us = [runner.pack() for _ in range(_PACKINGS[self._stage] if packs else 0)]
        return measured

    def _time_calls(self, runner: RunnerClient, baseline: BaselineProcess, count: int, measured: Measured) -> None:
        """Have the candidate and the baselines called in turns, the former with changed inputs, and collect the calls that are judged."""
        chosen = self._chosen(count)
        for turn in range(count):
            for name in _there_and_back(["candidate", *baseline.names], turn):
                if name == "candidate":
                    event_us = self._call(runner, Load.PRIMED | self._poison()).event_us
                    measured.event_us.append(event_us)
                    measured.judged_us += [event_us] if turn in chosen else []
                else:
                    measured.baselines[name].append(baseline.call(name))
            if turn in chosen:
                runner.collect(1 + chosen.index(turn))

    def _idle_us(self, runner: RunnerClient) -> float:
        """What a call on an idle device takes by events, less what its host part takes: nobody who looks finds a queue that is busy."""
        times = self._call(runner, self._poison())
        return times.event_us - times.host_us

    def _chosen(self, count: int) -> list[int]:
        """Choose which timed calls are judged: the last, and others by chance."""
        others = self._chance.sample(range(count - 1), self._validated - 1)
        return [*others, count - 1]

    def _call(self, runner: RunnerClient, load: Load) -> Reply:
        """Change some elements of the inputs and have the candidate run once."""
        changed = 0 if Defence.CHANGED_ELEMENTS in self._workers.off else runner.patch(self._chance)
        return runner.call(Load.PATCHES | load, changed)

    def _poison(self) -> Load:
        return Load.POISON_B if self._chance.random() < 0.5 else Load(0)

    def wrong(self) -> Outcome | None:
        """Have the oracle judge the chosen calls, the runner being dead; nothing where they are right, or it never got so far."""
        return self._validate(self._measured.chains) if self._measured is not None else None

    def _validate(self, chains: Chains) -> Outcome | None:
        call_plan = self._held.call_plan
        made = {*range(1 + self._validated), *chains.judged}
        skip = tuple(number not in made for number in range(len(call_plan.calls)))
        job = OracleJob(call_plans=(call_plan,), skip=(skip,), device="cuda", device_stores=self._held.device_stores)
        limit, stored = time.monotonic() + ORACLE_S, any(self._held.device_stores)
        done = self._workers.ask(
            "oracle", job.model_dump_json().encode(), self._held.shared, limit, self._cancel, problem=self._problem, stored=stored
        )
        try:
            answer = OracleAnswer.model_validate_json(done.answer)
        except ValidationError:
            raise self._failed(done.log.strip()) from None
        if Defence.TIMED_CALLS_JUDGED in self._workers.off:
            return None
        self.notes += not_judged(answer)
        return wrong_calls(answer, self._problem)

    def _failed(self, log: str) -> MachineError:
        """Say why the oracle has no answer."""
        if not ran_out(log):
            said = log.splitlines()[-1][:300] if log else "it ended without a word"
            hint = "See with nvidia-smi that the device still answers, and that the reference runs on float64 inputs there."
            return MachineError(f"The oracle, the reference in float64, failed for {self._problem.name}: {said}", hint)
        tensors = f"its {self._problem.abi.nbytes / 1e9:.1f} GB of tensors are judged by copies in float64"
        what = f"{self._sheet.title} is out of memory for {self._problem.name}: {tensors}."
        return MachineError(what, "Choose smaller sizes in its file, or a GPU with more memory.")

    def _conclude(self, measured: Measured, sampler: NvmlSampler, plan: LaunchPlan | None) -> Outcome | Timing:
        median_us = statistics.median(measured.event_us)
        impossible = plausibility.is_impossible(median_us, self._problem, self._sheet, packs=bool(measured.packing_us))
        if impossible and (Defence.ROOFLINE not in self._workers.off or median_us == 0):
            note = f"A median of {median_us:.3g} µs is less than this device needs to read the inputs once."
            return Outcome(Verdict.IMPOSSIBLE_TIME, notes=[note])
        hidden = self._hidden(measured)
        if hidden is not None:
            return hidden
        if self._stage == "search" and measured.chains.held and self._is_sealable:
            # what is published has its own process's time, or the sealed one's; in any other threads may launch for calls ahead
            self.notes += measured.without_host()
        skipped = plausibility.left_out(measured.event_us, measured.judged_us)
        if skipped and Defence.TIMED_CALLS_JUDGED not in self._workers.off:
            return Outcome(Verdict.TIMING_INCONSISTENT, notes=[skipped], by_chance=True)
        sabotage = plausibility.sabotage(measured.baselines, measured.before, measured.after)
        if sabotage and Defence.BASELINES_ALONE not in self._workers.off:
            return Outcome(Verdict.TIMING_INCONSISTENT, notes=[next(iter(sabotage.values()))], by_chance=True, slowed=tuple(sabotage))
        baselines = self._steady(measured)
        return Timing(
            tier=Tier.SEALED if self._is_sealed else plausibility.tier(measured.candidate_us, measured.chains.call_us),
            candidate=sample(measured.candidate_us),
            bracket=sample(measured.chains.call_us) if measured.chains.call_us else None,
            baselines={name: sample(times) for name, times in baselines.items()},
            speedups={name: speedup(times, measured.candidate_us) for name, times in baselines.items()},
            device=self._workers.title or self._sheet.title,
            clock_mhz=sampler.clock_mhz,
            power_w=sampler.power_w,
            throttled=sampler.throttled,
            packing=self._packing(measured.packing_us, plan),
            raw=measured.raw,
        )

    def _steady(self, measured: Measured) -> dict[str, Sequence[float]]:
        """Choose the baselines' times that the candidate is compared with, and note where these are not those beside it."""
        found: dict[str, Sequence[float]] = {}
        before, after = measured.before, measured.after
        rivals = plausibility.rivals(plausibility.fastest_alone(before, after))
        for name, times in measured.baselines.items():
            found[name], note = plausibility.steady(name, times, before[name], after[name], is_rival=name in rivals)
            self.notes += [note] if note else []
        return found

    def _hidden(self, measured: Measured) -> Outcome | None:
        """Refuse what hides work from its events; charge what the clock outside has beyond them to every other candidate."""
        chains = measured.chains
        if Defence.CLOCKS_AGREE in self._workers.off:
            return None
        left = plausibility.left_behind_us(measured.event_us, chains.tail_us, chains.calls)
        if left:
            note = f"Other streams worked for {left:.4g} µs after chained calls had ended on their caller's stream."
            return Outcome(Verdict.CHEATED, "work-in-flight", notes=[note, IN_FLIGHT], by_chance=True)
        if gap := plausibility.idle_excess_us(measured.event_us, measured.idle_us):
            note = f"On an idle device a call takes {gap:.4g} µs more than behind others: it looks whether it is measured."
            return Outcome(Verdict.TIMING_INCONSISTENT, notes=[note], by_chance=True)
        outputs = sum(spec.nbytes for spec in self._problem.abi.outputs)
        warm_gap = plausibility.hidden_us(measured.event_us, chains.warm_us, plausibility.dirty_us(outputs, self._sheet))
        gap = max(plausibility.hidden_us(measured.event_us, chains.call_us), warm_gap)
        if chains.held and plausibility.is_lie(measured.event_us, gap):
            median_us = statistics.median(measured.event_us)
            note = f"Its events say {median_us:.4g} µs, but in a chain a call takes {gap:.4g} µs more: work runs outside of them."
            return Outcome(Verdict.TIMING_INCONSISTENT, notes=[note], by_chance=True)
        if chains.held:
            measured.charged_us = plausibility.charged_us(measured.event_us, chains.call_us, warm_gap)
        elif chains.call_us:
            # events hold the head start that its host waits for: its time is its caller's, with a cold cache
            cold_us = plausibility.dirty_us(self._problem.abi.nbytes, self._sheet)
            measured.charged_us = statistics.median(chains.call_us) + cold_us - statistics.median(measured.event_us)
        return None

    def _packing(self, times: list[float], plan: LaunchPlan | None) -> Packing | None:
        """Say what packing took; nothing where there is no step for it, or none that took any time."""
        if not times or not statistics.median(times):
            return None
        tier, nbytes = (Tier.SEALED, plan.packed_nbytes) if plan is not None else (Tier.IN_PROCESS, None)
        return Packing(time=sample(times), tier=tier, nbytes=nbytes)


def _there_and_back(names: list[str], turn: int) -> Iterable[str]:
    return names if turn % 2 == 0 else reversed(names)
