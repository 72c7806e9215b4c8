"""The oracle: trusted, runs after the runner is dead, and judges bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tools.evaluation import numerics
from tools.evaluation.numerics import EXACT, Errors
from tools.evaluation.phases import Phase
from tools.evaluation.reference import DeclaredReference, Oracle
from tools.evaluation.tape import Sitting, Tape
from tools.records import OutputError, Problem, Record, ScalarSpec, TensorSpec

if TYPE_CHECKING:
    import torch

NO_DIGITS = 0.05
"""A limit above this says that the reference has no digits on these inputs: they prove nothing and are left out."""


class OracleJob(Record):
    """What to judge, and where."""

    sittings: tuple[Sitting, ...]
    skip: tuple[tuple[bool, ...], ...]
    """By sitting and call: not made, so not to be judged."""
    device: str
    threads: int = 1


class CallVerdict(Record):
    """Errors of one call."""

    sitting: int
    call: int
    group: str
    outputs: tuple[OutputError, ...]
    repeat_agrees: bool = True
    """Whether the run with the other poison gave the same: bitwise, or within the limits of each other."""


class OracleAnswer(Record):
    """All calls, and what could not be used."""

    calls: tuple[CallVerdict, ...]
    notes: tuple[str, ...] = ()


def judge(phase: Phase) -> None:
    """Judge every call of every sitting."""
    import torch

    job = OracleJob.model_validate_json(phase.job)
    torch.set_num_threads(job.threads)
    torch.manual_seed(0)
    verdicts: list[CallVerdict] = []
    notes: dict[str, None] = {}
    for index, sitting in enumerate(job.sittings):
        bench = _Bench(index, sitting, phase, job.device)
        verdicts += bench.judge(job.skip[index], notes)
    phase.answer(OracleAnswer(calls=tuple(verdicts), notes=tuple(notes)).model_dump_json().encode())


class _Measured(Record):
    """One call before its group's limits are known."""

    call: int
    found: tuple[tuple[Errors, ...], ...]
    """By run and output."""
    own: tuple[Errors, ...]
    sensitivity: tuple[Errors, ...]
    apart: tuple[Errors, ...]
    """Distance of the second run from the first."""


class _Bench:
    """One sitting under judgement."""

    def __init__(self, index: int, sitting: Sitting, phase: Phase, device: str) -> None:
        self._index = index
        self._sitting = sitting
        self._problem = Problem.model_validate_json(sitting.problem)
        self._device = device
        abi = self._problem.abi
        self._tape = Tape(abi, sitting.calls, phase.shared[f"inputs{index}"], phase.shared[f"outputs{index}"])
        values = self._tape.parameters.tensors(self._tape.inputs_memory)
        parameters = {spec.name: value.to(device) for spec, value in zip(abi.parameters, values, strict=True)}
        self._reference = DeclaredReference(self._problem, device)
        self._reference.load(parameters)
        self._oracle = Oracle(self._problem, parameters, device)
        self._roundoff = max(
            (numerics.unit_roundoff(self._problem.policy, s.dtype) for s in abi.inputs if numerics.is_float(s)), default=0.0
        )

    def judge(self, skip: tuple[bool, ...], notes: dict[str, None]) -> list[CallVerdict]:
        """Measure each call, then hold it against the limits of its group."""
        measured = [self._measure(number, notes) for number in range(len(self._sitting.calls)) if not skip[number]]
        verdicts = []
        for group in dict.fromkeys(call.group for call in self._sitting.calls):
            members = [m for m in measured if self._sitting.calls[m.call].group == group]
            if not members:
                continue
            limits = self._limits(members)
            if max(limit.relative_l2 for limit in limits) > NO_DIGITS and group != "as made":
                notes[f"Inputs “{group}” were left out: the reference itself has no digits on them."] = None
                continue
            verdicts += [self._verdict(member, group, limits) for member in members]
        return verdicts

    def _measure(self, number: int, notes: dict[str, None]) -> _Measured:
        arguments = self._arguments(number)
        oracle = self._oracle.outputs(arguments)
        reference = [value.to(truth.device) for value, truth in zip(self._reference.outputs(arguments), oracle, strict=True)]
        specs = self._problem.abi.outputs
        for spec, truth in zip(specs, oracle, strict=True):
            if numerics.is_float(spec) and str(truth.dtype) != "torch.float64":
                notes[f"The reference fixes {truth.dtype} for {spec.name}: the oracle could not compute all of it in float64."] = None
        runs = [self._run(number, run) for run in range(self._sitting.calls[number].slots)]
        found = tuple(tuple(map(_error, specs, run, reference, oracle)) for run in runs)
        own = tuple(map(_error, specs, reference, reference, oracle))
        draws = [tuple(map(_error, specs, self._moved(arguments), reference, oracle)) for _ in range(2)]
        # a step that one draw happens to cross is no lack of digits: the smaller of two draws counts
        sensitivity = tuple(Errors(*map(min, a, b)) for a, b in zip(*draws, strict=True))
        apart = tuple(map(_apart, specs, runs[0], runs[-1]))
        return _Measured(call=number, found=found, own=own, sensitivity=sensitivity, apart=apart)

    def _moved(self, arguments: list[Any]) -> list[torch.Tensor]:
        return self._oracle.sensitivity(arguments, self._roundoff)

    def _limits(self, members: list[_Measured]) -> list[Errors]:
        limits = []
        for place, spec in enumerate(self._problem.abi.outputs):
            own, sensitivity = EXACT, EXACT
            for member in members:
                own = own.largest(_finite(member.own[place]))
                sensitivity = sensitivity.largest(_finite(member.sensitivity[place]))
            limits.append(numerics.limits(spec, self._problem.policy, own, sensitivity))
        return limits

    def _verdict(self, member: _Measured, group: str, limits: list[Errors]) -> CallVerdict:
        specs = self._problem.abi.outputs
        runs = [tuple(map(numerics.output_error, specs, run, member.own, limits)) for run in member.found]
        passed = [all(error.passed for error in run) for run in runs]
        near = all(a.relative_l2 <= b.relative_l2 and a.worst_row <= b.worst_row for a, b in zip(member.apart, limits, strict=True))
        worst = max(runs, key=lambda run: max((numerics.severity(error) for error in run), default=0.0))
        agrees = len(set(passed)) == 1 and (near or not passed[0])
        return CallVerdict(sitting=self._index, call=member.call, group=group, outputs=worst, repeat_agrees=agrees)

    def _arguments(self, number: int) -> list[Any]:
        tensors = iter(self._tape.inputs(number).tensors(self._tape.inputs_memory))
        abi = self._problem.abi
        return [a.value if isinstance(a, ScalarSpec) else next(tensors).to(self._device, copy=True) for a in abi.arguments]

    def _run(self, number: int, run: int) -> list[torch.Tensor]:
        return [value.to(self._device) for value in self._tape.outputs(number, run).tensors(self._tape.outputs_memory)]


def _error(spec: TensorSpec, value: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor) -> Errors:
    if numerics.is_float(spec):
        return numerics.distance(value, oracle, reference)
    return numerics.mismatch(value, reference, oracle)


def _apart(spec: TensorSpec, first: torch.Tensor, second: torch.Tensor) -> Errors:
    import torch

    if torch.equal(first, second):
        return EXACT
    return numerics.distance(second, first, first) if numerics.is_float(spec) else numerics.mismatch(second, first, first)


def _finite(errors: Errors) -> Errors:
    """Leave an infinite own error out: it would allow anything."""
    return Errors(*(value if value < float("inf") else 0.0 for value in errors))
