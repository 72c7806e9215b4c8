"""The oracle: trusted, runs after the runner is dead, and judges bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tools.complex_pairs import in_parts
from tools.evaluation.trusted import numerics
from tools.evaluation.trusted.device_store import tensors_of
from tools.evaluation.trusted.free_order import FreeOrder, Held
from tools.evaluation.trusted.free_rounding import FreeRounding, chooses
from tools.evaluation.trusted.numerics import EXACT, Errors
from tools.evaluation.trusted.picture import LARGEST, pictured
from tools.evaluation.trusted.ties import ORDERING
from tools.evaluation.trusted.tolerance import NoTruthError, Scale, Tolerance, Truth, error_of, has_digits
from tools.evaluation.wire.calls import CallPlan
from tools.evaluation.wire.distributions import AS_MADE
from tools.evaluation.wire.jobs.oracle import CallVerdict, OracleAnswer, OracleJob
from tools.evaluation.wire.phase import Phase
from tools.evaluation.wire.size_classes import MIDDLE_BYTES
from tools.float8 import widened
from tools.records import Problem, ScalarSpec, TensorSpec, WrongOutput

if TYPE_CHECKING:
    import torch


NO_ROOM = "The device had too little memory to see what the inputs determine: limits are those of the reference's own errors."
NOT_WIDENED = "The reference does not run with its casts to float32 widened: the oracle computes what they reach in float32."


def judge(phase: Phase) -> None:
    """Judge every call of every plan."""
    import torch

    from tools.problems.seeding import seed_torch

    job = OracleJob.model_validate_json(phase.job)
    torch.set_num_threads(job.threads)
    seed_torch(0)
    verdicts: list[CallVerdict] = []
    notes: dict[str, None] = {}
    for index, call_plan in enumerate(job.call_plans):
        judgement = _Judgement(index, call_plan, phase, job)
        verdicts += judgement.judge(job.skip[index], notes)
        judgement.close()
    phase.answer(OracleAnswer(calls=tuple(verdicts), notes=tuple(notes)).model_dump_json().encode())


@dataclass(frozen=True)
class _Measured:
    """One call before its group's limits are known."""

    call: int
    scale: Scale
    found: tuple[tuple[Errors, ...], ...]
    """By run and output."""
    apart: tuple[Errors, ...]
    """Distance of the second run from the first."""
    wrong: tuple[WrongOutput, ...] = ()
    """Where its outputs are off by its own limits, which are no larger than its group's."""
    is_beyond: bool = False
    """Whether outputs are off by its own limits."""


class _Judgement:
    """One plan under judgement."""

    def __init__(self, index: int, call_plan: CallPlan, phase: Phase, job: OracleJob) -> None:
        self._index = index
        self._call_plan = call_plan
        self._problem = Problem.model_validate_json(call_plan.problem)
        self._large = self._problem.abi.nbytes >= MIDDLE_BYTES
        self._device = job.device
        self._store = tensors_of(phase, index, call_plan, job.device_stores)
        values = self._store.parameter_tensors()
        parameters = {spec.name: value.to(job.device) for spec, value in zip(self._problem.abi.parameters, values, strict=True)}
        self._tolerance = Tolerance(self._problem, parameters, job.device)
        self._is_wrong = False
        """Whether a call stayed wrong after a second thought."""
        self._has_wrong_call = False
        self._shown: set[str] = set()
        """Groups of which a call that may be wrong was looked at."""

    def close(self) -> None:
        """Give the plan's memory back."""
        self._store.close()

    def judge(self, skip: tuple[bool, ...], notes: dict[str, None]) -> list[CallVerdict]:
        """Measure each call, then hold it against the limits of its group."""
        kept = [(number, call.group) for number, call in enumerate(self._call_plan.calls) if not skip[number]]
        last = {group: number for number, group in kept}
        measured = [member for number, group in kept if (member := self._measured(number, notes, is_last=number == last[group]))]
        verdicts = []
        for group in dict.fromkeys(call.group for call in self._call_plan.calls):
            members = [m for m in measured if self._call_plan.calls[m.call].group == group]
            if not members:
                continue
            limits = self._tolerance.limits([member.scale for member in members])
            if not has_digits(limits):
                if group != AS_MADE:
                    notes[f"Inputs “{group}” were left out: the reference itself has no digits on them."] = None
                    continue
                notes["The reference itself has no digits on the problem's own inputs: nearly any answer is within its limits."] = None
            for member in members:
                first = self._in_any_order(member, self._verdict(member, group, limits), limits)
                first = self._in_any_rounding(member, first, limits, notes)
                verdicts.append(self._second_thought(member, first, limits, notes))
                self._has_wrong_call |= not _is_right(verdicts[-1])
                self._store.forget(member.call)
        for spec, *shares in zip(self._problem.abi.outputs, *(verdict.left_out for verdict in verdicts if verdict.left_out), strict=True):
            if max(shares, default=0):
                notes[f"Up to {max(shares):.1%} of {spec.name} in a call depend on how equal elements are put in order: not judged."] = None
        return verdicts

    def _measured(self, number: int, notes: dict[str, None], *, is_last: bool) -> _Measured | None:
        """Measure a call, and forget what no second look needs; None where its inputs prove nothing."""
        try:
            # it costs two more runs in float64, and calls of a group differ in their seeds alone; the last has the most room
            member = self._measure(number, notes, sensitive=not self._large or is_last)
        except NoTruthError as error:
            notes[f"Inputs “{self._call_plan.calls[number].group}” were left out: {error}."] = None
            member = None
        if member is None or not (self._may_have_another_order(member) or self._may_be_rounded_otherwise(member)):
            self._store.forget(number)
        return member

    def _measure(self, number: int, notes: dict[str, None], *, sensitive: bool) -> _Measured:
        call = self._call_plan.calls[number]
        truth = self._tolerance.truth(lambda: self._arguments(number), call.distribution, sensitive=sensitive)
        specs = self._problem.abi.outputs
        if not self._tolerance.oracle.widens:
            notes[NOT_WIDENED] = None
        if self._tolerance.lacks_room:
            notes[NO_ROOM] = None
        for spec, value in zip(specs, truth.oracle, strict=True):
            if spec.is_float and str(value.dtype) != "torch.float64":
                notes[f"The reference fixes {value.dtype} for {spec.name}: the oracle could not compute all of it in float64."] = None
        runs = [self._run(number, run) for run in range(call.slots)]
        found = tuple(tuple(map(error_of, specs, run, truth.reference, truth.oracle)) for run in runs)
        wrong = self._pictured(call.group, truth, found, runs)
        limits = self._tolerance.limits([truth.scale])
        beyond = not all(error.within(limit) for errors in found for error, limit in zip(errors, limits, strict=True))
        return _Measured(number, truth.scale, found, tuple(map(_apart, specs, runs[0], runs[-1])), wrong, beyond)

    def _pictured(
        self, group: str, truth: Truth, found: tuple[tuple[Errors, ...], ...], runs: list[list[torch.Tensor]]
    ) -> tuple[WrongOutput, ...]:
        """Where the outputs of a call are off that may be wrong; of a group that has one nothing more is looked at."""
        limits = self._tolerance.limits([truth.scale])
        if group in self._shown:
            return ()
        for run, errors in zip(runs, found, strict=True):
            if not all(map(Errors.within, errors, limits)):
                self._shown.add(group)
                return self._off(truth, errors, run, limits)
        return ()

    def _off(self, truth: Truth, errors: tuple[Errors, ...], run: list[torch.Tensor], limits: list[Errors]) -> tuple[WrongOutput, ...]:
        """Where outputs are off that are beyond their limits, and no larger than can be looked at."""
        off = [at for at, (error, limit) in enumerate(zip(errors, limits, strict=True)) if not error.within(limit)]
        shown, specs = [at for at in off if run[at].numel() <= LARGEST], self._problem.abi.outputs
        return tuple(pictured(specs[at], run[at], truth.oracle[at], truth.reference[at], limits[at]) for at in shown)

    def _may_have_another_order(self, member: _Measured) -> bool:
        return member.is_beyond and bool(ORDERING & {name.split(".")[1] for name in self._problem.work.operators})

    def _in_any_order(self, member: _Measured, first: CallVerdict, limits: list[Errors]) -> CallVerdict:
        """Hold a call that is wrong against the reference with equal elements in the candidate's order, where it orders such."""
        specs, call = self._problem.abi.outputs, self._call_plan.calls[member.call]
        if not self._may_have_another_order(member) or _is_right(first):
            return first
        order = FreeOrder(self._tolerance, lambda: self._arguments(member.call), call.distribution)
        if not order.has_ties:
            return first
        runs = [self._run(member.call, run) for run in range(call.slots)]
        held = [order.held(run, limits) for run in runs]
        # two runs may put equal elements in different orders, and each is held against its own
        wrong = next((shown for one, run in zip(held, runs, strict=True) if (shown := self._off(one.truth, one.errors, run, limits))), ())
        again = replace(member, found=tuple(one.errors for one in held), apart=(EXACT,) * len(specs), wrong=wrong)
        return self._verdict(again, first.group, limits).model_copy(update={"left_out": _left_out(held)})

    def _may_be_rounded_otherwise(self, member: _Measured) -> bool:
        """Whether it is wrong, and on inputs that were made to be hard, or in what it chose: else the problem's own have to be right."""
        made_hard = self._call_plan.calls[member.call].distribution != AS_MADE
        return member.is_beyond and not self._large and (made_hard or self._chose_otherwise(member))

    def _chose_otherwise(self, member: _Measured) -> bool:
        specs = self._problem.abi.outputs
        return any(chooses(spec) and error != EXACT for errors in member.found for spec, error in zip(specs, errors, strict=True))

    def _in_any_rounding(self, member: _Measured, first: CallVerdict, limits: list[Errors], notes: dict[str, None]) -> CallVerdict:
        """Hold a call that is wrong against the reference rounded otherwise, where that takes it beyond the limits, too."""
        # of whole numbers any is beyond its limit, which is nothing
        places = [place for place, spec in enumerate(self._problem.abi.outputs) if not chooses(spec)]
        lost = any(first.outputs[place].severity == float("inf") for place in places)
        if _is_right(first) or lost or self._has_wrong_call or not self._may_be_rounded_otherwise(member):
            return first
        call = self._call_plan.calls[member.call]
        runs = [self._run(member.call, run) for run in range(call.slots)]
        held = FreeRounding(self._tolerance, lambda: self._arguments(member.call), call.distribution).held(runs, limits)
        again = self._verdict(replace(member, found=tuple(one.errors for one in held)), first.group, limits)
        if not _is_right(again):
            return first
        for spec, share in zip(self._problem.abi.outputs, _left_out(held), strict=True):
            if share:
                notes[
                    f"{share:.2%} of {spec.name} on “{first.group}” are lost to the reference's own rounding, and as near as it comes."
                ] = None
        return again

    def _second_thought(self, member: _Measured, first: CallVerdict, limits: list[Errors], notes: dict[str, None]) -> CallVerdict:
        """Hold a call that is wrong against more draws of the reference's error, until one stays wrong; its group's limits stay."""
        severity = max((error.severity for error in first.outputs), default=0.0)
        if severity <= 1 or severity == float("inf") or self._large or self._is_wrong:
            return first
        raised = self._tolerance.raised(limits, self._tolerance.drawn_again(self._arguments(member.call)))
        second = self._verdict(member, first.group, raised)
        self._is_wrong = not all(error.passed for error in second.outputs)
        if not self._is_wrong:
            notes[f"A call on “{first.group}” was beyond its limit, and is within what more draws of the reference's error allow."] = None
        return second

    def _verdict(self, member: _Measured, group: str, limits: list[Errors]) -> CallVerdict:
        specs = self._problem.abi.outputs
        runs = [tuple(map(numerics.output_error, specs, run, member.scale.own, limits)) for run in member.found]
        passed = [all(error.passed for error in run) for run in runs]
        near = all(a.relative_l2 <= b.relative_l2 and a.worst_row <= b.worst_row for a, b in zip(member.apart, limits, strict=True))
        worst = max(runs, key=lambda run: max((error.severity for error in run), default=0.0))
        agrees = len(set(passed)) == 1 and (near or not passed[0])
        wrong = member.wrong if not all(error.passed for error in worst) else ()
        return CallVerdict(call_plan=self._index, call=member.call, group=group, outputs=worst, wrong=wrong, repeat_agrees=agrees)

    def _arguments(self, number: int) -> list[Any]:
        tensors = iter(self._store.input_tensors(number))
        abi = self._problem.abi
        return [a.value if isinstance(a, ScalarSpec) else next(tensors).to(self._device, copy=True) for a in abi.arguments]

    def _run(self, number: int, run: int) -> list[torch.Tensor]:
        return [in_parts(widened(value.to(self._device))) for value in self._store.output_tensors(number, run)]


def _is_right(verdict: CallVerdict) -> bool:
    return all(error.passed for error in verdict.outputs)


def _left_out(held: list[Held]) -> tuple[float, ...]:
    """By output: the largest share of what was left out of a run."""
    return tuple(max(shares) for shares in zip(*(one.left_out for one in held), strict=True))


def _apart(spec: TensorSpec, first: torch.Tensor, second: torch.Tensor) -> Errors:
    import torch

    if torch.equal(first, second):
        return EXACT
    return numerics.distance(second, first, first) if spec.is_float else numerics.mismatch(second, first, first)
