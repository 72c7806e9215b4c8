"""The supervisor: no CUDA, no candidate code; takes one request through build, check and time, and writes the evaluation."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pydantic import ValidationError

from tools.evaluation import extensions, weakening
from tools.evaluation.admissions import Admissions
from tools.evaluation.builder import BuildAnswer, BuilderJob
from tools.evaluation.child import DeadlineError
from tools.evaluation.correctness import ORACLE_S, Check, Outcome, size_of
from tools.evaluation.counting import NO_DEVICE, Counting
from tools.evaluation.defences import Defence
from tools.evaluation.derive import Derived, DeriveJob
from tools.evaluation.health import Health, sick
from tools.evaluation.machine_code import ResourcesAnswer, ResourcesJob
from tools.evaluation.protocol import Baselines, EvaluationRequest
from tools.evaluation.provenance import named, provenance
from tools.evaluation.rival import RivalShelf
from tools.evaluation.schedule import LARGE_BYTES, sitting
from tools.evaluation.sealing import time_sealed
from tools.evaluation.static_rules import inspect_source, rejected
from tools.evaluation.statistics import sample
from tools.evaluation.timing import TimedSession, time_rival
from tools.evaluation.turns import Stay, Turns
from tools.evaluation.workshop import Workshop
from tools.hardware.detect import refuse_other_target
from tools.logs import telling_part
from tools.profiling.estimate import estimate_reference, estimate_time
from tools.profiling.ncu import Counters
from tools.profiling.nvml import driver_version
from tools.records import Evaluation, HardwareSheet, KernelResources, Problem, Seeds, Tier, Verdict, content_hash

_RESOURCES_S = 120.0
_SIDE_BY_SIDE = 4
"""Candidates checked on one device at the same time."""
_SPARES = 2 * _SIDE_BY_SIDE
"""Runners that wait with CUDA started, about half a gigabyte of device memory each: one to check and one to time a candidate."""
_CHEAP_PROGRAMS = 2048
"""An interpreted program takes about a millisecond or more: this many are two to ten seconds."""
_CHEAP_BYTES = 32 << 20
_CHEAP_BYTES_BLIND = 2 << 20
_CHEAP_FLOPS = 2e8


@dataclass
class _Case:
    """What is known so far."""

    request: EvaluationRequest
    build: BuildAnswer = field(default_factory=lambda: BuildAnswer(status="opaque"))
    kernels: tuple[KernelResources, ...] = ()
    notes: list[str] = field(default_factory=list)
    log: str = ""
    seeds: list[Seeds] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, after: Stay | None = None) -> Iterator[None]:
        """Take down how long a phase took, and how long it waited for its turn on the device."""
        start = time.monotonic()
        if after is not None:
            self.seconds["queue"] = self.seconds.get("queue", 0.0) + after.waited_s
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start


class Supervisor:
    """Judges requests with one workshop; called from worker threads."""

    def __init__(self, shop: Workshop, *, max_autotune: bool = False) -> None:
        """Use `shop`'s processes; `max_autotune` adds that mode of torch.compile to the baselines."""
        self._shop = shop
        self._gpu = shop.device is not None
        self._turns = Turns(_SIDE_BY_SIDE)
        self._rivals = RivalShelf(shop, max_autotune=max_autotune)
        self._admissions = Admissions(shop)
        self._counting = Counting()
        self._health = Health(shop.device) if shop.device is not None else None
        # by content: equal machine code is read once
        self._read: dict[str, tuple[tuple[KernelResources, ...], tuple[str, ...]]] = {}
        self._threads = ThreadPoolExecutor(thread_name_prefix="supervisor")

    def weakened(self, shop: Workshop) -> Self:
        """Give the same supervisor, working in a weakened view of its workshop."""
        twin = copy.copy(self)
        twin._shop = shop
        return twin

    def evaluate(self, request: EvaluationRequest, cancel: int) -> Evaluation:
        """Judge one candidate; `cancel` is a descriptor that turns readable to give up."""
        start = time.monotonic()
        self._ready(request.target)
        case = _Case(request)
        outcome = self._read_source(case)
        if outcome is None:
            with case.phase("build"):
                outcome = self._build(case, cancel)
        figures: dict[str, Any] = {}
        if outcome is None and self._gpu:
            outcome, figures = self._examined(case, *self._on_device(case, cancel), cancel)
        elif outcome is None:
            outcome, figures = self._check_and_read(case, cancel)
        return Evaluation(
            candidate=request.candidate,
            verdict=outcome.verdict,
            rule=outcome.rule,
            correctness=outcome.correctness,
            launches=case.build.launches,
            provenance=provenance(outcome.heard or named(case.build.launches), blind=Defence.PROVENANCE in self._shop.off),
            weakened=tuple(sorted(self._shop.off)),
            sandbox=self._shop.isolation(gpu=self._gpu).sentence,
            notes=tuple(dict.fromkeys([*outcome.notes, *case.notes])),
            log=outcome.log or case.log,
            seeds=tuple(case.seeds),
            versions=self._versions(),
            seconds=time.monotonic() - start,
            phase_seconds=case.seconds,
            **figures,
        )

    def _ready(self, target: HardwareSheet) -> None:
        """Start what is needed; refuse a device that is quarantined, and a target that it is not."""
        self._shop.start()
        if self._health is not None:
            self._health.demand()
            refuse_other_target(self._shop.title, target)

    def _examined(self, case: _Case, outcome: Outcome, figures: dict[str, Any], cancel: int) -> tuple[Outcome, dict[str, Any]]:
        """Look whether the device is well after a candidate; where it is not, a failure says nothing about the candidate."""
        assert self._health is not None
        failed = outcome.verdict in (Verdict.CRASHED, Verdict.TIMED_OUT)
        fault = self._health.examine()
        if failed and not fault:
            with self._turns.shared():
                fault = sick(self._shop, case.request.problem, cancel)
            self._health.quarantine(fault)
        if not fault:
            return outcome, figures
        case.notes.append(f"GPU {self._shop.device} is quarantined after this candidate: {fault}.")
        if not failed:
            return outcome, figures
        notes = [f"It ended as {outcome.verdict}, but the device was not well afterwards.", *outcome.notes]
        return replace(outcome, verdict=Verdict.INFRASTRUCTURE, notes=notes), figures

    def _read_source(self, case: _Case) -> Outcome | None:
        """Hold the source against the static rules: an outcome ends the evaluation, the rest is said in notes."""
        if Defence.STATIC_RULES in self._shop.off:
            return None
        findings = inspect_source(case.request.source)
        case.notes += [str(finding) for finding in findings if finding.severity == "note"]
        reasons = rejected(findings)
        if not reasons:
            return None
        return Outcome(Verdict.CHEATED, rule=f"static:{reasons[0].rule}", notes=[str(finding) for finding in reasons])

    def baselines(self, problem: Problem, target: HardwareSheet, cancel: int) -> Baselines:
        """Examine the problem, and time the reference, or estimate it where there is no GPU."""
        self._ready(target)
        if not self._gpu:
            admission = self._admissions.admission(problem, cancel)
            estimate = estimate_reference(problem, target)
            return Baselines(tier=Tier.ESTIMATED, estimate=estimate, device=target.title, admission=admission)
        with self._turns.alone():
            admission = self._admissions.admission(problem, cancel)
            try:
                rival = self._rivals.rival(problem, target, "search", cancel)
                times = time_rival(rival, "search")
            except BaseException:
                self._rivals.clear()
                raise
            self._rivals.rest()
        samples = {name: sample(values) for name, values in times.items()}
        return Baselines(
            tier=Tier.IN_PROCESS, samples=samples, device=self._shop.title or target.title, notes=tuple(rival.notes), admission=admission
        )

    def counters(self, request: EvaluationRequest, cancel: int) -> Counters:
        """Read the hardware counters of one call of a candidate, nobody else being on the device."""
        if not self._gpu:
            return Counters(note=NO_DEVICE)
        self._ready(request.target)
        with self._turns.alone():
            self._shop.spares.settle()
            return self._counting.count(self._shop, request, cancel)

    def derive(self, problem: Problem, cancel: int) -> Derived:
        """Read a problem's ABI, work and small variants anew out of its source, where this workshop runs references."""
        self._shop.start()
        job = DeriveJob(problem=problem).model_dump_json().encode()
        try:
            done = self._shop.ask("derive", job, {}, time.monotonic() + ORACLE_S, cancel)
            return Derived.model_validate_json(done.answer)
        except DeadlineError:
            return Derived(problem=None, refusal=f"{problem.name}: its source did not end within {ORACLE_S:.0f} s.")
        except ValidationError:
            return Derived(problem=None, refusal=f"{problem.name}: its source gave no answer: {telling_part(done.log)} ({done.ending}).")

    def close(self) -> None:
        """End what is kept between evaluations."""
        self._threads.shutdown()
        with self._turns.alone():
            self._rivals.clear()

    def _versions(self) -> dict[str, str]:
        versions = dict(self._shop.native.versions)
        driver = driver_version() if self._gpu else None
        return versions | ({"driver": driver} if driver else {})

    def _on_device(self, case: _Case, cancel: int) -> tuple[Outcome, dict[str, Any]]:
        """Check on the GPU beside others, then time alone."""
        figures: dict[str, Any] = {}
        with self._reading(case, cancel):
            outcome = self._check_on_device(case, cancel)
            if outcome.verdict is Verdict.PASS:
                with self._turns.alone() as stay, case.phase("time", after=stay):
                    self._shop.spares.settle()
                    outcome, figures = self._time(case, outcome, cancel)
        figures["gpu_seconds"] = case.seconds["check"] + case.seconds.get("time", 0.0)
        return outcome, figures | {"kernels": case.kernels}

    @contextmanager
    def _reading(self, case: _Case, cancel: int) -> Iterator[None]:
        """Read the compiled kernels meanwhile; they are in `case` afterwards."""
        reading = self._threads.submit(self._read_kernels, case, cancel)
        try:
            yield
        finally:
            # also where the rest failed: `cancel` is the caller's, and closed when this is over
            wait([reading])
        case.kernels, notes = reading.result()
        case.notes += notes

    def _check_on_device(self, case: _Case, cancel: int) -> Outcome:
        """Check beside other candidates; one that may have failed because of them is checked again alone."""
        company = False
        if all(problem.abi.compulsory_bytes < LARGE_BYTES for problem in self._sizes_on_device(case.request)):
            with self._turns.shared() as stay, case.phase("check", after=stay):
                # for those who come next: nobody is timed now
                self._shop.spares.refill(_SPARES, self._threads)
                outcome = self._check(case, cancel)
            company = stay.company
            if not company or outcome.verdict in (Verdict.PASS, Verdict.WRONG, Verdict.CHEATED):
                return outcome
        with self._turns.alone() as stay, case.phase("check", after=stay):
            return self._check(case, cancel)

    def _time(self, case: _Case, checked: Outcome, cancel: int) -> tuple[Outcome, dict[str, Any]]:
        request = case.request
        try:
            rival = self._rivals.rival(request.problem, request.target, request.stage, cancel)
            case.notes += rival.notes
            session = TimedSession(self._shop, request.problem, request.target, request.stage, cancel)
            case.seeds.append(session.seeds)
            found = session.run(request.source, rival, request.timeout_s, self._cache(case))
            if not isinstance(found, Outcome):
                found = time_sealed(self._shop, request, case, rival, found, cancel)
        except BaseException:
            self._rivals.clear()
            raise
        self._rivals.rest()
        if isinstance(found, Outcome):
            return found, {}
        return checked, {"timing": found}

    def _build(self, case: _Case, cancel: int) -> Outcome | None:
        """Compile the candidate for the target; an outcome ends the evaluation."""
        request = case.request
        if lack := self._lack(request):
            return Outcome(Verdict.INFRASTRUCTURE, notes=[lack])
        others = tuple(variant.abi for variant in request.variants) if self._gpu else ()
        job = BuilderJob(abi=request.problem.abi, source=request.source, sheet=request.target, others=others, launchers=self._gpu)
        try:
            done = self._shop.ask(
                "builder", job.model_dump_json().encode(), {}, time.monotonic() + request.timeout_s, cancel, sandboxed=True
            )
        except DeadlineError:
            return Outcome(Verdict.TIMED_OUT, notes=[f"The build took longer than {request.timeout_s:g} s."])
        case.log = done.log
        try:
            case.build = BuildAnswer.model_validate_json(done.answer)
        except ValidationError:
            return Outcome(Verdict.BUILD_FAILED, notes=[f"The build gave no answer: {done.ending}."], log=done.log)
        case.notes += case.build.notes
        if case.build.status == "failed":
            last = (case.build.reason.strip().splitlines() or ["no reason given"])[-1]
            return Outcome(Verdict.BUILD_FAILED, notes=[last[:400]], log=case.build.reason)
        return None

    def _lack(self, request: EvaluationRequest) -> str:
        """Why a candidate cannot be judged on this machine whatever it is like; empty where it can."""
        if not extensions.needs_device(request.source):
            return ""
        if not self._gpu:
            return "CUDA C++ is judged on an NVIDIA GPU only: nothing here runs it, and the interpreter is Triton's."
        missing = extensions.missing_tools()
        return f"CUDA C++ cannot be built on this machine: it lacks {missing}." if missing else ""

    def _check_and_read(self, case: _Case, cancel: int) -> tuple[Outcome, dict[str, Any]]:
        """Check with the interpreter while the compiled kernels are read beside it."""
        with self._reading(case, cancel), case.phase("check"):
            outcome = self._check(case, cancel)
        if outcome.verdict is not Verdict.PASS:
            return outcome, {"kernels": case.kernels}
        return outcome, self._estimate(case)

    def _check(self, case: _Case, cancel: int) -> Outcome:
        problems = self._problems(case)
        if isinstance(problems, Outcome):
            return problems
        problems = weakening.sizes(problems, self._shop.off)
        stage = case.request.stage
        sittings = tuple(
            # where there is no other size, parameters are shaken at the only one; timed calls have them as they are made
            weakening.sitting(
                sitting(problem, place, stage, battery=bool(problem.sizes) or not self._gpu, shaken=len(problems) == 1), self._shop.off
            )
            for place, problem in enumerate(problems)
        )
        case.seeds += [one.published("check", size_of(problem)) for problem, one in zip(problems, sittings, strict=True)]
        # on a device listening takes a second, and the builder has followed the host code
        check = Check(self._shop, problems, sittings, cancel, listens=stage == "confirm" or not self._gpu)
        return check.run(case.request.source, case.request.target, case.request.timeout_s, self._cache(case))

    def _cache(self, case: _Case) -> str:
        """What runners on a device need not compile again; the interpreter compiles nothing."""
        return case.build.cache if self._gpu else ""

    def _problems(self, case: _Case) -> tuple[Problem, ...] | Outcome:
        """Choose the sizes to check at."""
        request = case.request
        if self._gpu:
            return self._sizes_on_device(request)
        if self._uses_bfloat16(case):
            return Outcome(
                Verdict.INFRASTRUCTURE, notes=["Triton's interpreter computes bfloat16 wrongly: this candidate needs a GPU to be judged."]
            )
        problems = request.variants
        if self._is_cheap(case):
            problems = (*problems, request.problem)
        if not problems:
            note = "The problem has no small variants and is too large for the interpreter: it needs a GPU to be judged."
            return Outcome(Verdict.INFRASTRUCTURE, notes=[note])
        return problems

    @staticmethod
    def _sizes_on_device(request: EvaluationRequest) -> tuple[Problem, ...]:
        """All of them; in a search a large problem as written is judged by its timed calls alone."""
        large = request.problem.abi.compulsory_bytes >= LARGE_BYTES
        if large and request.stage == "search" and request.variants:
            return request.variants
        return (*request.variants, request.problem)

    def _uses_bfloat16(self, case: _Case) -> bool:
        abi = case.request.problem.abi
        if any(spec.dtype == "bfloat16" for spec in (*abi.inputs, *abi.parameters, *abi.outputs)):
            return True
        blind = case.build.status == "opaque"
        return case.build.bfloat16 or (blind and re.search(r"\b(bfloat16|bf16)\b", case.request.source) is not None)

    def _is_cheap(self, case: _Case) -> bool:
        """Whether the interpreter can run the problem as written in a few seconds."""
        problem = case.request.problem
        programs = 0
        for launch in case.build.launches:
            product = 1
            for size in launch.grid:
                product *= max(size, 0)
            programs += product
        limit = _CHEAP_BYTES_BLIND if case.build.status == "opaque" else _CHEAP_BYTES
        return problem.abi.compulsory_bytes <= limit and problem.work.matmul_flops <= _CHEAP_FLOPS and programs <= _CHEAP_PROGRAMS

    def _estimate(self, case: _Case) -> dict[str, Any]:
        """Model the time of the recorded launches."""
        figures: dict[str, Any] = {"kernels": case.kernels}
        if case.build.status == "built" and case.build.launches:
            request = case.request
            figures["estimate"] = estimate_time(request.problem, case.build.launches, case.kernels, request.target)
        else:
            case.notes.append("No time is estimated: the candidate's launches are not known.")
        return figures

    def _read_kernels(self, case: _Case, cancel: int) -> tuple[tuple[KernelResources, ...], tuple[str, ...]]:
        """Read the machine code of the compiled kernels; the notes say what could not be read."""
        if not case.build.kernels:
            return (), ()
        arch = case.request.target.arch
        key = content_hash(arch, *(f"{kernel.name} {kernel.shared_bytes} {kernel.code}" for kernel in case.build.kernels))
        if key in self._read:
            return self._read[key]
        job = ResourcesJob(arch=arch, kernels=case.build.kernels)
        try:
            done = self._shop.ask("resources", job.model_dump_json().encode(), {}, time.monotonic() + _RESOURCES_S, cancel, sandboxed=True)
            answer = ResourcesAnswer.model_validate_json(done.answer)
        except (DeadlineError, ValidationError):
            return (), ("The machine code could not be read: its figures are missing.",)
        self._read[key] = answer.kernels, answer.notes
        return self._read[key]
