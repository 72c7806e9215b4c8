"""What the lab holds a problem's candidates against: the evaluator's own oracle and limits, worked out once a problem and kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.lab.device_lock import DeviceLock, is_huge
from tools.evaluation.supervisor.checking.call_plan import distributions, new_seed
from tools.evaluation.trusted import numerics
from tools.evaluation.trusted.inputs import made_inputs, unusable
from tools.evaluation.trusted.numerics import Errors
from tools.evaluation.trusted.reference import opened
from tools.evaluation.trusted.tolerance import Tolerance, Truth, error_of, has_digits
from tools.evaluation.wire.calls import CallSpec
from tools.evaluation.wire.distributions import AS_MADE
from tools.evaluation.wire.size_classes import LARGE_BYTES
from tools.problems import Reference
from tools.records import OutputError, Problem

if TYPE_CHECKING:
    import torch

HARD_CALLS = 2
"""Distributions of the battery that a problem is tried on, where it is not large: `low bits` and one that is drawn."""
MUCH = 1 / 16
"""Share of the room."""


def plan_calls(problem: Problem) -> tuple[CallSpec, ...]:
    """Draw the calls on which every candidate of a problem is judged: inputs as it makes them first, then hard ones."""
    large = problem.abi.nbytes >= LARGE_BYTES
    names = (AS_MADE, *(() if large else distributions(problem, HARD_CALLS)))
    return tuple(CallSpec(seed=new_seed(), distribution=name, group=name) for name in names)


class KnownCall(NamedTuple):
    """One call with its tolerance."""

    distribution: str
    arguments: list[Any]
    truth: Truth
    limits: list[Errors]

    def errors(self, problem: Problem, outputs: Sequence[torch.Tensor]) -> tuple[OutputError, ...]:
        """Measure outputs, of the shapes and dtypes that are asked for, as the evaluator's oracle does."""
        specs = problem.abi.outputs
        found = map(error_of, specs, outputs, self.truth.reference, self.truth.oracle)
        return tuple(map(numerics.output_error, specs, found, self.truth.scale.own, self.limits))

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Everything of it that lies on the device."""
        import torch

        return [value for value in (*self.arguments, *self.truth.oracle, *self.truth.reference) if isinstance(value, torch.Tensor)]


class Known(NamedTuple):
    """One problem as a process keeps it."""

    opened: Reference
    """On the host: candidates get its parameters."""
    calls: tuple[KnownCall, ...]
    """As made first."""
    notes: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """What it takes on the device."""
        return sum(value.nbytes for call in self.calls for value in call.tensors)


class Truths:
    """The problems that were asked for lately, as many as there is room for."""

    def __init__(self, device: str, lock: DeviceLock, room: int) -> None:
        """Keep at most `room` bytes between two questions."""
        self._device, self._lock, self._room = device, lock, room
        # by problem id, the one that was asked for last at the end
        self._known: dict[str, Known] = {}

    def of(self, problem: Problem, calls: Sequence[CallSpec]) -> Known:
        """Give what is known of a problem, worked out anew where it was dropped: from the same calls it is the same."""
        known = self._known.pop(problem.id, None)
        if known is None:
            if is_huge(problem):
                self._known.clear()
            known = self._made(problem, calls)
        self._known[problem.id] = known
        return known

    def drop(self, problem: Problem) -> None:
        """Forget a problem, whose tensors a candidate may have written to."""
        self._known.pop(problem.id, None)

    def trim(self, problem: Problem) -> None:
        """Keep to the room, after a question of `problem`; huge ones are not kept at all."""
        if is_huge(problem):
            self.drop(problem)
        taken = sum(known.nbytes for known in self._known.values())
        while taken > self._room:
            taken -= self._known.pop(self._oldest()).nbytes

    def _oldest(self) -> str:
        """Name the problem that was not asked for the longest, of those that take much where there are any.

        What takes much is worked out again in less than a second; what takes little may be a network that the host builds for longer.
        """
        much = [name for name, known in self._known.items() if known.nbytes > self._room * MUCH]
        return next(iter(much or self._known))

    def _made(self, problem: Problem, calls: Sequence[CallSpec]) -> Known:
        reference = opened(problem)
        tolerance = Tolerance(problem, reference.parameters(), self._device)
        known, notes = [], dict[str, None]()
        with self._lock.taken():
            for call in calls:
                arguments = made_inputs(tolerance.reference, call)
                reason = unusable(tolerance.reference, arguments, call.distribution)
                if reason:
                    notes[f"Inputs “{call.distribution}” were left out: {reason}."] = None
                    continue
                truth = tolerance.truth(partial(list, arguments), call.distribution)
                limits = tolerance.limits([truth.scale])
                notes |= dict.fromkeys(_shortcomings(problem, call, truth, limits))
                if call.distribution == AS_MADE or has_digits(limits):
                    known.append(KnownCall(call.distribution, arguments, truth, limits))
        return Known(reference, tuple(known), tuple(notes))


def _shortcomings(problem: Problem, call: CallSpec, truth: Truth, limits: list[Errors]) -> list[str]:
    """Say what the tolerance of a call cannot tell."""
    said = [
        f"The reference fixes {value.dtype} for {spec.name}: the oracle could not compute all of it in float64."
        for spec, value in zip(problem.abi.outputs, truth.oracle, strict=True)
        if spec.is_float and str(value.dtype) != "torch.float64"
    ]
    if not has_digits(limits) and call.distribution == AS_MADE:
        said.append("The reference itself has no digits on the problem's own inputs: nearly any answer is within its limits.")
    elif not has_digits(limits):
        said.append(f"Inputs “{call.distribution}” were left out: the reference itself has no digits on them.")
    return said
