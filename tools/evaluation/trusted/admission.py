"""Admission of a problem: null kernels must fail on it, and every input and parameter must matter. Trusted; knows no candidate."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tools.complex_pairs import changed, is_inexact
from tools.errors import UserError
from tools.evaluation.trusted.inputs import made_inputs, shaken, unusable
from tools.evaluation.trusted.null_kernels import chosen, dropping, plain_nulls
from tools.evaluation.trusted.numerics import Errors
from tools.evaluation.trusted.reference import DeclaredReference
from tools.evaluation.trusted.rounding import SHORTER, all_rounded
from tools.evaluation.trusted.tolerance import NoTruthError, Tolerance, Truth, error_of, has_digits
from tools.evaluation.wire.calls import CallSpec
from tools.evaluation.wire.distributions import AS_MADE, allowed
from tools.evaluation.wire.jobs.admission import AdmissionJob
from tools.evaluation.wire.phase import Phase
from tools.problems import describe_sizes, small_variants
from tools.records import Admission, NullPass, Problem, TensorSpec

if TYPE_CHECKING:
    import torch

OWN_CALLS = 3
MAX_PARAMETERS = 48
"""Parameters that are changed one at a time; of more, as many are chosen evenly."""

NOTHING_SMALL = "The problem was not examined: it has no small variants and is too large as written."
ALL_OUTPUTS = "every output"
IN_SHORTER = "the reference computed from inputs of the next shorter format"

Null = tuple[str, str]
"""What is given, and as which output."""


@dataclass
class _Call:
    """One call with its tolerance."""

    distribution: str
    arguments: list[Any]
    truth: Truth
    limits: list[Errors] = field(default_factory=list)


@dataclass
class _Survivors:
    """Which null kernels have passed every call so far."""

    tried: dict[Null, None] = field(default_factory=dict)
    failed_own: set[Null] = field(default_factory=set)
    failed: set[Null] = field(default_factory=set)

    def note(self, null: Null, *, passed: bool, own: bool) -> None:
        """Take down how one call went."""
        self.tried[null] = None
        if not passed:
            self.failed.add(null)
            if own:
                self.failed_own.add(null)

    def passes(self) -> tuple[NullPass, ...]:
        """List what never failed, and what failed on inputs of the battery alone."""
        everywhere = [null for null in self.tried if null not in self.failed]
        own = [null for null in self.tried if null in self.failed and null not in self.failed_own]
        found = [(null, "everywhere") for null in everywhere] + [(null, "own inputs") for null in own]
        return tuple(NullPass(null=what, output=output, where=where) for (what, output), where in found)


def examine(phase: Phase) -> None:
    """Examine a problem at several sizes and answer with its admission."""
    import torch

    try:
        job = _with_variants(AdmissionJob.model_validate_json(phase.job))
    except UserError as error:
        phase.answer(Admission(notes=(f"The problem was not examined: {error.what}",)).model_dump_json().encode())
        return
    if not job.problems:
        phase.answer(Admission(notes=(NOTHING_SMALL,)).model_dump_json().encode())
        return
    torch.set_num_threads(job.threads)
    phase.answer(admission(job).model_dump_json().encode())


def _with_variants(job: AdmissionJob) -> AdmissionJob:
    """Put the variants that had to be sought before the problem as written."""
    if job.vary is None:
        return job
    return job.model_copy(update={"problems": (*small_variants(job.vary), *job.problems), "vary": None})


def admission(job: AdmissionJob) -> Admission:
    """Judge every null kernel on every call of every size: one that fails anywhere has failed."""
    survivors = _Survivors()
    mattering: set[str] = set()
    declared: dict[str, None] = {}
    notes: dict[str, None] = {}
    calls = 0
    for place, problem in enumerate(job.problems):
        examination = _Examination(problem, place, job, notes)
        for call, previous in examination.calls():
            calls += 1
            # one that fails on inputs of the problem's own has failed, and need not be tried again
            for null, values in examination.nulls(call, previous, survivors.failed_own):
                passed = all(examination.passes(place, value, call) for place, value in values.items())
                survivors.note(null, passed=passed, own=call.distribution == AS_MADE)
        declared |= dict.fromkeys(examination.declared)
        mattering |= examination.mattering(mattering)
    return Admission(
        examined=tuple(dict.fromkeys(map(describe_sizes, job.problems))),
        calls=calls,
        nulls=tuple(dict.fromkeys(name for name, _ in survivors.tried)),
        passed=survivors.passes(),
        ignored=tuple(name for name in declared if name not in mattering),
        notes=tuple(notes),
    )


class _Examination:
    """One size under examination."""

    def __init__(self, problem: Problem, place: int, job: AdmissionJob, notes: dict[str, None]) -> None:
        from tools.problems.seeding import seed_torch

        seed_torch(job.seed + place)
        self._problem = problem
        self._seed = job.seed + 1000 * place
        made = DeclaredReference(problem, job.device).parameters()
        # as in an evaluation: defaults stay as they are at the first size alone
        self._parameters = {name: shaken(value) if place else value for name, value in made.items()}
        self._tolerance = Tolerance(problem, self._parameters, job.device)
        large = not problem.sizes and len(job.problems) > 1
        self._held = list(self._make(large=large, notes=notes))
        self._shorter = self._shorter_roundoff()

    def _make(self, *, large: bool, notes: dict[str, None]) -> Iterator[_Call]:
        """Make the calls of this size; a large one has the problem's own inputs alone."""
        integers = not all(spec.is_float for spec in self._problem.abi.outputs)
        names = () if large else allowed(self._problem.work.operators, integers_out=integers)
        floats = any(spec.is_float for spec in self._problem.abi.inputs)
        own = [self._call(number, AS_MADE) for number in range(2 if large else OWN_CALLS)]
        limits = self._tolerance.limits([call.truth.scale for call in own])
        if not has_digits(limits):
            notes[f"At {describe_sizes(self._problem)} the reference has no digits on the problem's own inputs."] = None
        for call in own:
            call.limits = limits
        yield from own
        for number, name in enumerate(names if floats else ()):
            found = self._battery_call(len(own) + number, name)
            if found is not None:
                yield found

    def _battery_call(self, number: int, name: str) -> _Call | None:
        spec = CallSpec(seed=self._seed + number, distribution=name, group=name)
        arguments = made_inputs(self._tolerance.reference, spec)
        if unusable(self._tolerance.reference, arguments, name):
            return None
        try:
            call = _Call(name, arguments, self._tolerance.truth(lambda: arguments, name))
        except NoTruthError:
            return None
        call.limits = self._tolerance.limits([call.truth.scale])
        return call if has_digits(call.limits) else None

    def _call(self, number: int, name: str) -> _Call:
        arguments = made_inputs(self._tolerance.reference, CallSpec(seed=self._seed + number, distribution=name, group=name))
        return _Call(name, arguments, self._tolerance.truth(lambda: arguments, name))

    def calls(self) -> Iterator[tuple[_Call, _Call]]:
        """Give every call with the one before it; the last comes before the first."""
        for number, call in enumerate(self._held):
            yield call, self._held[number - 1]

    def passes(self, place: int, value: torch.Tensor, call: _Call) -> bool:
        """Whether `value` would be within the limits of an output."""
        spec = self._problem.abi.outputs[place]
        found = error_of(spec, value, call.truth.reference[place], call.truth.oracle[place])
        limit = call.limits[place]
        return found.relative_l2 <= limit.relative_l2 and found.worst_row <= limit.worst_row

    def nulls(self, call: _Call, previous: _Call, without: Collection[Null]) -> Iterator[tuple[Null, dict[int, torch.Tensor]]]:
        """Make null kernels' outputs for one call, by place, all but those named; the outputs that are not there are right."""
        specs = self._problem.abi.outputs
        for (what, place), make in plain_nulls(self._problem.abi, call.arguments, call.truth.oracle, previous.truth.oracle).items():
            if (what, specs[place].name) not in without:
                yield (what, specs[place].name), {place: make()}
        if self._shorter and (IN_SHORTER, ALL_OUTPUTS) not in without:
            outputs = self._in_shorter_format(call.arguments)
            floats = {place: value for place, value in enumerate(outputs) if specs[place].is_float}
            if floats:
                yield (IN_SHORTER, ALL_OUTPUTS), floats
        for what, outputs in self._without_an_operator(call.arguments, without):
            if all(value.shape == truth.shape for value, truth in zip(outputs, call.truth.oracle, strict=True)):
                yield (what, ALL_OUTPUTS), dict(enumerate(outputs))

    def _shorter_roundoff(self) -> float:
        """Roundoff of the format below the declared one; 0 where no float goes in."""
        abi = self._problem.abi
        floats = [spec.dtype for spec in (*abi.inputs, *abi.parameters) if spec.is_float]
        if not floats:
            return 0.0
        return SHORTER[min(self._tolerance.roundoff(dtype) for dtype in floats)]

    def _in_shorter_format(self, arguments: list[Any]) -> list[torch.Tensor]:
        reference = self._tolerance.reference
        short = dict(zip(self._parameters, all_rounded(list(self._parameters.values()), self._shorter), strict=True))
        reference.load(short)
        try:
            return reference.outputs(all_rounded(arguments, self._shorter))
        finally:
            reference.load(self._parameters)

    def _without_an_operator(self, arguments: list[Any], without: Collection[Null]) -> Iterator[tuple[str, list[torch.Tensor]]]:
        oracle = self._tolerance.oracle
        with dropping(-1) as names:
            oracle.outputs(arguments)
        for index in chosen(len(names)):
            what = f"the result without {names[index]} (operator {index + 1} of {len(names)})"
            if (what, ALL_OUTPUTS) in without:
                continue
            try:
                with dropping(index):
                    yield what, oracle.outputs(arguments)
            except (RuntimeError, ValueError, IndexError, ArithmeticError):
                continue

    @property
    def declared(self) -> list[str]:
        """Inputs and float parameters by name; running statistics are no inputs while training."""
        abi = self._problem.abi
        parameters = [spec.name for spec in abi.parameters if spec.is_float]
        if abi.training:
            parameters = [name for name in parameters if not name.endswith(("running_mean", "running_var"))]
        step = -(-len(parameters) // MAX_PARAMETERS) or 1
        return [*(spec.name for spec in abi.inputs if spec.numel), *parameters[::step]]

    def mattering(self, known: set[str]) -> set[str]:
        """Name inputs and parameters that change an output beyond its limits, of those that are not known to."""
        left = [name for name in self.declared if name not in known]
        return {name for name in left if any(self._matters(name, call, other) for call, other in self.calls())}

    def _matters(self, name: str, call: _Call, other: _Call) -> bool:
        changed = self._changed(name, call, other)
        return changed is None or not all(self.passes(place, value, call) for place, value in enumerate(changed))

    def _changed(self, name: str, call: _Call, other: _Call) -> list[torch.Tensor] | None:
        """Run the oracle with one input or parameter changed; None where it cannot be changed, or that raises."""
        oracle = self._tolerance.oracle
        try:
            if name in self._parameters:
                with oracle.replaced({name: changed(self._parameters[name], _moved)}):
                    return oracle.outputs(call.arguments)
            place = next(i for i, a in enumerate(self._problem.abi.arguments) if isinstance(a, TensorSpec) and a.name == name)
            arguments = list(call.arguments)
            if bool((arguments[place] == other.arguments[place]).all()):
                if not is_inexact(arguments[place]):
                    return None
                arguments[place] = shaken(arguments[place] * 1.5)
            else:
                arguments[place] = other.arguments[place]
            return oracle.outputs(arguments)
        except (RuntimeError, ValueError, IndexError, ArithmeticError):
            return None


def _moved(value: torch.Tensor) -> torch.Tensor:
    import torch

    wide = value.double()
    return wide + (0.25 + torch.rand_like(wide)) * (wide.abs().mean() + 0.1)
