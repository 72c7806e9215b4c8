"""The supervisor: no CUDA, no candidate code; takes one request through build, check and time, and writes the evaluation."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeAlias

from pydantic import ValidationError

from tools.cost.estimate import estimate_reference, estimate_time
from tools.evaluation.processes.allowance import Allowance, StarvedError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import Finished, WorkerPool
from tools.evaluation.supervisor.admission_client import Admissions
from tools.evaluation.supervisor.case import Case, Steps
from tools.evaluation.supervisor.checking import weakening
from tools.evaluation.supervisor.checking.call_plan import plan_calls
from tools.evaluation.supervisor.checking.correctness import ORACLE_S, Check, Outcome, size_of
from tools.evaluation.supervisor.counters_client import NO_DEVICE
from tools.evaluation.supervisor.interpretable import EMULATED, NEEDS_DEVICE, emulated, needs_sizes, obstacle, too_large
from tools.evaluation.supervisor.kernel_reader import KernelReader
from tools.evaluation.supervisor.on_device import OnDevice, sizes_on_device
from tools.evaluation.supervisor.provenance import named, provenance
from tools.evaluation.supervisor.static_rules import inspect_source, rejected
from tools.evaluation.supervisor.timed.compiling import COMPILE_S
from tools.evaluation.wire.defences import Defence
from tools.evaluation.wire.jobs.builder import BuildAnswer, BuilderJob
from tools.evaluation.wire.jobs.derive import Derived, DeriveJob
from tools.evaluation.wire.source_text import needs_device
from tools.logs import telling_part
from tools.machine_code.compilers import missing_tools
from tools.profiling.ncu import Counters
from tools.profiling.nvml import driver_version
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem, Tier, Verdict

Builds: TypeAlias = Callable[[bytes, float, int], Finished]
"""Builds what a job says within so many seconds, elsewhere, in a sandbox there; the last argument turns readable to give up."""


class Supervisor:
    """Judges requests with one worker pool; called from worker threads."""

    def __init__(
        self, workers: WorkerPool, *, max_autotune: bool = False, compile_s: float = COMPILE_S, builds: Builds | None = None
    ) -> None:
        """Use `workers`' processes; `max_autotune` adds that mode of torch.compile to the baselines.

        torch.compile of a reference is waited for `compile_s` seconds. `builds` compiles candidates elsewhere than on this machine.
        """
        self._workers = workers
        self._builds = builds
        self._gpu = workers.device is not None
        self._admissions = Admissions(workers)
        self._threads = ThreadPoolExecutor(thread_name_prefix="supervisor")
        self._reader = KernelReader(self._threads)
        self._device = OnDevice(workers, max_autotune=max_autotune, compile_s=compile_s) if self._gpu else None

    def weakened(self, workers: WorkerPool) -> Self:
        """Give the same supervisor, working in a weakened view of its workers."""
        twin = copy.copy(self)
        twin._workers = workers
        # a defence is switched off here alone
        twin._builds = None
        return twin

    def evaluate(self, request: EvaluationRequest, cancel: int, timed: Callable[[], None] = lambda: None) -> Evaluation:
        """Judge one candidate; `cancel` is a descriptor that turns readable to give up.

        `timed` is called where the candidate was timed and has only to be judged.
        """
        start = time.monotonic()
        case = Case(request, timed=timed)
        with case.phase("start"):
            self._ready(request.target)
        outcome = self._read_source(case)
        if outcome is None:
            with case.phase("build"):
                outcome = self._build(case, cancel)
        figures: dict[str, Any] = {}
        if outcome is None and request.depth != "whole":
            outcome, figures = self._inspect(case, cancel)
        elif outcome is None and self._device is not None:
            outcome, figures = self._judge_on(self._device, case, cancel)
        elif outcome is None:
            outcome, figures = self._check_and_read(case, cancel)
        return Evaluation(
            candidate=request.candidate,
            verdict=outcome.verdict,
            rule=outcome.rule,
            correctness=outcome.correctness,
            launches=case.build.launches,
            provenance=provenance(outcome.heard or named(case.build.launches), blind=Defence.PROVENANCE in self._workers.off),
            weakened=tuple(sorted(self._workers.off)),
            sandbox=self._workers.isolation(gpu=self._gpu).sentence,
            notes=tuple(dict.fromkeys([*outcome.notes, *case.notes])),
            log=outcome.log or case.log,
            seeds=tuple(case.seeds),
            versions=self._versions(),
            seconds=time.monotonic() - start,
            phase_seconds=case.seconds,
            **figures,
        )

    def _ready(self, target: HardwareSheet, *, judges: bool = True) -> None:
        """Start what is needed; refuse a device that is quarantined, and a target that it is not."""
        self._workers.start(judges=judges)
        if self._device is not None:
            self._device.demand(self._workers, target)

    def _judge_on(self, device: OnDevice, case: Case, cancel: int) -> tuple[Outcome, dict[str, Any]]:
        """Check and time on the GPU while the compiled kernels are read beside it."""
        with self._reader.beside(self._workers, case, cancel):
            outcome, figures = device.judge(self._workers, case, partial(self._check, case, cancel), self._cache(case), cancel)
        return device.examined(self._workers, case, outcome, cancel), figures | {"kernels": case.kernels}

    def _inspect(self, case: Case, cancel: int) -> tuple[Outcome, dict[str, Any]]:
        """Read the compiled kernels, and check at the small sizes where that was asked; nothing is timed."""
        with self._reader.beside(self._workers, case, cancel):
            outcome = Outcome(Verdict.BUILT) if case.request.depth == "build" else self._check_untimed(case, cancel)
        return outcome, {"kernels": case.kernels}

    def _check_untimed(self, case: Case, cancel: int) -> Outcome:
        check = partial(self._check, case, cancel)
        if self._device is not None:
            outcome = self._device.check(self._workers, case, check)
            return self._device.examined(self._workers, case, outcome, cancel)
        with case.phase("check"):
            return check()

    def _read_source(self, case: Case) -> Outcome | None:
        """Hold the source against the static rules: an outcome ends the evaluation, the rest is said in notes."""
        if Defence.STATIC_RULES in self._workers.off:
            return None
        findings = inspect_source(case.request.source)
        case.notes += [str(finding) for finding in findings if finding.severity == "note"]
        reasons = rejected(findings)
        if not reasons:
            return None
        return Outcome(Verdict.CHEATED, rule=f"static:{reasons[0].rule}", notes=[str(finding) for finding in reasons])

    def baselines(self, problem: Problem, target: HardwareSheet, cancel: int) -> Baselines:
        """Examine the problem, and time the reference, or estimate it where there is no GPU."""
        steps = Steps()
        with steps.step("evaluator start"):
            self._ready(target, judges=False)
        if self._device is not None:
            return self._device.baselines(self._workers, self._admissions, problem, target, steps, cancel)
        with steps.step("admission"):
            admission = self._admissions.admission(problem, cancel)
        estimate = estimate_reference(problem, target)
        return Baselines(tier=Tier.ESTIMATED, estimate=estimate, device=target.title, admission=admission, steps=steps.found)

    def counters(self, request: EvaluationRequest, cancel: int) -> Counters:
        """Read the hardware counters of one call of a candidate, nobody else being on the device."""
        if self._device is None:
            return Counters(note=NO_DEVICE)
        self._ready(request.target)
        return self._device.counters(self._workers, request, cancel)

    def calibrate(self, cancel: int) -> float:
        """Time the calibration kernel, microseconds; 0 without a GPU."""
        self._workers.start(judges=False)
        return self._device.calibrate(self._workers, cancel) if self._device is not None else 0.0

    def derive(self, problem: Problem, cancel: int) -> Derived:
        """Read a problem's ABI, work and small variants anew out of its source, where this pool runs references."""
        self._workers.start(judges=False)
        job = DeriveJob(problem=problem).model_dump_json().encode()
        try:
            done = self._workers.ask("derive", job, {}, time.monotonic() + ORACLE_S, cancel)
            return Derived.model_validate_json(done.answer)
        except DeadlineError:
            return Derived(problem=None, refusal=f"{problem.name}: its source did not end within {ORACLE_S:.0f} s.")
        except ValidationError:
            return Derived(problem=None, refusal=f"{problem.name}: its source gave no answer: {telling_part(done.log)} ({done.ending}).")

    def close(self) -> None:
        """End what is kept between evaluations."""
        self._threads.shutdown()
        if self._device is not None:
            self._device.close()

    def _versions(self) -> dict[str, str]:
        versions = dict(self._workers.native.versions)
        driver = driver_version() if self._gpu else None
        return versions | ({"driver": driver} if driver else {})

    def _build(self, case: Case, cancel: int) -> Outcome | None:
        """Compile the candidate for the target; an outcome ends the evaluation."""
        request = case.request
        if lack := self._lack(request):
            return Outcome(Verdict.INFRASTRUCTURE, notes=[lack])
        others = tuple(variant.abi for variant in request.variants) if self._gpu else ()
        job = BuilderJob(
            abi=request.problem.abi,
            source=request.source,
            sheet=request.target,
            others=others,
            launchers=self._gpu,
            misuses=request.stage == "confirm",
        )
        # nvcc and its like compile side by side: on a machine with a GPU the clock counts
        own = None if self._gpu else Allowance(request.timeout_s)
        limit = own or time.monotonic() + request.timeout_s
        try:
            done = self._built(job.model_dump_json().encode(), request.timeout_s, limit, cancel)
        except StarvedError:
            assert own is not None
            return Outcome(Verdict.INFRASTRUCTURE, notes=[f"Could not be judged: {own.starved()} for the build."])
        except DeadlineError:
            return Outcome(Verdict.TIMED_OUT, notes=[f"The build took longer than {request.timeout_s:g} s (--timeout)."])
        case.log = done.log
        try:
            case.build = BuildAnswer.model_validate_json(done.answer)
        except ValidationError:
            return Outcome(Verdict.BUILD_FAILED, notes=[f"The build gave no answer: {done.ending}."], log=done.log)
        case.notes += case.build.notes
        if case.build.taken:
            case.notes.append(f"Not guarded: without an error it launches kernels for {', '.join(case.build.taken)}.")
        if case.build.status == "failed":
            last = (case.build.reason.strip().splitlines() or ["no reason given"])[-1]
            return Outcome(Verdict.BUILD_FAILED, notes=[last[:400]], log=case.build.reason)
        return None

    def _built(self, job: bytes, limit_s: float, limit: float | Allowance, cancel: int) -> Finished:
        """Have a sandboxed builder do it, here or elsewhere."""
        if self._builds is not None:
            return self._builds(job, limit_s, cancel)
        return self._workers.ask("builder", job, {}, limit, cancel, sandboxed=True)

    def _lack(self, request: EvaluationRequest) -> str:
        """Why a candidate cannot be judged on this machine whatever it is like; empty where it can."""
        if not self._gpu and request.depth != "build":
            reason, mend = obstacle(request.problem, request.variants)
            if reason:
                return f"Could not be judged: {reason}. {mend}"
        if not needs_device(request.source):
            return ""
        if not self._gpu and request.depth != "build":
            return "CUDA C++ is judged on an NVIDIA GPU only: nothing here runs it, and the interpreter is Triton's."
        missing = missing_tools()
        return f"CUDA C++ cannot be built on this machine: it lacks {missing}." if missing else ""

    def _check_and_read(self, case: Case, cancel: int) -> tuple[Outcome, dict[str, Any]]:
        """Check with the interpreter while the compiled kernels are read beside it."""
        with self._reader.beside(self._workers, case, cancel), case.phase("check"):
            outcome = self._check(case, cancel)
        if outcome.correctness is not None:
            short = emulated(case.request, case.build)
            outcome = replace(outcome, correctness=outcome.correctness.model_copy(update={"emulated": short}))
        if outcome.verdict is not Verdict.PASS:
            return outcome, {"kernels": case.kernels}
        return outcome, self._estimate(case)

    def _check(self, case: Case, cancel: int) -> Outcome:
        problems = self._problems(case)
        if isinstance(problems, Outcome):
            return problems
        problems = weakening.sizes(problems, self._workers.off)
        stage = case.request.stage
        call_plans = tuple(
            # where there is no other size, parameters are shaken at the only one; timed calls have them as they are made
            weakening.call_plan(
                plan_calls(problem, place, stage, battery=bool(problem.sizes) or not self._gpu, shaken=len(problems) == 1),
                self._workers.off,
            )
            for place, problem in enumerate(problems)
        )
        case.seeds += [one.published("check", size_of(problem)) for problem, one in zip(problems, call_plans, strict=True)]
        # on a device listening takes a second, and the builder has followed the host code
        check = Check(self._workers, problems, call_plans, cancel, listens=stage == "confirm" or not self._gpu, stage=stage, part=case.part)
        return check.run(case.request.source, case.request.target, case.request.timeout_s, self._cache(case))

    def _cache(self, case: Case) -> str:
        """What runners on a device need not compile again; the interpreter compiles nothing."""
        return case.build.cache if self._gpu else ""

    def _problems(self, case: Case) -> tuple[Problem, ...] | Outcome:
        """Choose the sizes to check at."""
        request = case.request
        if self._gpu:
            return request.variants if request.depth == "check" and request.variants else sizes_on_device(request)
        reason, mend = "", ""
        if strange := set(emulated(request, case.build)) - EMULATED:
            reason, mend = f"it computes in {', '.join(sorted(strange))}, which nothing here knows", NEEDS_DEVICE
        fault = too_large(request.problem, case.build)
        if not reason and fault and not request.variants:
            reason, mend = (
                f"as written it is too large for Triton's interpreter ({fault}), and there are no small sizes",
                needs_sizes(request.problem),
            )
        if reason:
            return Outcome(Verdict.INFRASTRUCTURE, notes=[f"Could not be judged: {reason}. {mend}"])
        if request.depth == "check" and request.variants:
            return request.variants
        if not fault:
            return (*request.variants, request.problem)
        case.notes.append(f"Not judged at full size: it is too large for Triton's interpreter ({fault}).")
        return request.variants

    def _estimate(self, case: Case) -> dict[str, Any]:
        """Model the time of the recorded launches."""
        figures: dict[str, Any] = {"kernels": case.kernels}
        if case.build.status == "built" and case.build.launches:
            request = case.request
            figures["estimate"] = estimate_time(request.problem, case.build.launches, case.kernels, request.target, case.build.packing)
        else:
            case.notes.append("No time is estimated: the candidate's launches are not known.")
        return figures
