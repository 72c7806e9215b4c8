"""What one call's outputs are held against: the oracle, the reference, and how far from the oracle a candidate may be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tools.complex_pairs import NAMES, changed
from tools.evaluation.trusted import numerics
from tools.evaluation.trusted.numerics import EXACT, ROUNDOFF, Errors
from tools.evaluation.trusted.reference import DeclaredReference, Oracle
from tools.evaluation.trusted.rounding import all_rounded, stepped
from tools.evaluation.wire.distributions import AS_MADE
from tools.float8 import widened
from tools.records import Problem, TensorSpec

if TYPE_CHECKING:
    import torch

Arguments: TypeAlias = Callable[[], list[Any]]
"""Gives a call's positional arguments, each time anew."""

NO_DIGITS = 0.05
"""A limit above this says that the reference has no digits on these inputs: they prove nothing and are left out."""

DRAWS = 8
"""How often the reference's error is drawn again before a call is called wrong."""

INTEGERS = ("odd integers", "small integers", "sparse", "one-hot")
"""Distributions on which sums and products may be exact."""

LINEAR = frozenset(
    {
        "mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "linear", "matmul", "sum", "cumsum", "add", "mul", "relu", "cat", "stack",
        "clone", "_to_copy", "copy_", "index", "index_select", "embedding", "gather", "max_pool2d_with_indices", "max", "amax",
    }
)  # fmt: skip
"""Operators that keep integers exact in any order of summation while no sum of magnitudes exceeds the mantissa.

Convolutions are not among them: fast transforms, which libraries use, round.
"""


class Scale(NamedTuple):
    """What one call says of how wrong its outputs may be, by output."""

    own: tuple[Errors, ...]
    """The reference's errors."""
    sensitivity: tuple[Errors, ...]
    exact: tuple[bool, ...]
    """Every way of computing gives these outputs without rounding."""


class Truth(NamedTuple):
    """One call's tolerance."""

    oracle: list[torch.Tensor]
    reference: list[torch.Tensor]
    scale: Scale


class NoTruthError(Exception):
    """The reference is not defined in exact arithmetic on inputs that were made to be hard, or beside them."""


@contextlib.contextmanager
def _defined(distribution: str) -> Iterator[None]:
    import torch

    try:
        yield
    except (torch.linalg.LinAlgError, ArithmeticError, IndexError, ValueError) as error:  # type: ignore[attr-defined]
        if distribution == AS_MADE:
            raise
        raise NoTruthError(f"the reference raises {type(error).__name__.lstrip('_')} on them in float64, or beside them") from error


class Tolerance:
    """The oracle and the reference of one problem with one set of parameters."""

    def __init__(self, problem: Problem, parameters: Mapping[str, torch.Tensor], device: str) -> None:
        """Open both on `device`."""
        self.problem = problem
        self.reference = DeclaredReference(problem, device)
        self.reference.load(parameters)
        self.oracle = Oracle(problem, parameters, device)
        self.lacks_room = False
        """Whether the device had too little memory to see what a call's inputs determine."""
        abi = problem.abi
        self._roundoff = max((numerics.input_roundoff(problem.policy, s.dtype) for s in abi.inputs if s.is_float), default=0.0)
        is_real = all(spec.dtype not in NAMES for spec in (*abi.inputs, *abi.parameters, *abi.outputs))
        # a product of complex numbers is off by sums that magnitudes of their parts do not bound
        self._linear = is_real and {name.split(".")[1] for name in problem.work.operators} <= LINEAR

    def roundoff(self, dtype: str) -> float:
        """Roundoff of the shortest format that the policy lets some operator of the problem have; known when the reference has run."""
        return numerics.unit_roundoff(self.problem.policy.of_operator(cudnn=self.reference.uses_cudnn), dtype)

    def truth(self, arguments: Arguments, distribution: str = AS_MADE, *, sensitive: bool = True) -> Truth:
        """Run oracle and reference on one call's arguments; not `sensitive`, another call of its group says what its inputs determine.

        `arguments` gives them once more for each run, so that none is kept beside what the run makes: of gigabytes, two would not fit.
        NoTruthError where they raise on inputs that were made to be hard.
        """
        with _defined(distribution):
            return self._truth(arguments, distribution, sensitive=sensitive)

    def _truth(self, arguments: Arguments, distribution: str, *, sensitive: bool) -> Truth:
        import torch

        specs = self.problem.abi.outputs
        oracle = self.oracle.truth(arguments)
        reference = [value.to(truth.device) for value, truth in zip(self.reference.outputs(arguments()), oracle, strict=True)]
        own = self._own(arguments, reference, oracle)

        def moved(outputs: list[torch.Tensor]) -> tuple[Errors, ...]:
            return tuple(map(error_of, specs, outputs, reference, oracle))

        sensitivity = (EXACT,) * len(specs)
        if sensitive:
            try:
                sensitivity = self._sensitivity(arguments, distribution, moved)
            except torch.OutOfMemoryError:
                # without it a candidate is held to the reference's own errors alone, which are no larger
                self.lacks_room = True
        return Truth(oracle, reference, Scale(own, sensitivity, self._exact(arguments, distribution, oracle, reference)))

    def _own(self, arguments: Arguments, reference: list[torch.Tensor], oracle: list[torch.Tensor]) -> tuple[Errors, ...]:
        """Find the reference's errors: the largest of all ways of running it that the policy allows."""
        specs = self.problem.abi.outputs
        found = list(map(error_of, specs, reference, reference, oracle))
        for other in self.reference.others(arguments):
            values = [value.to(truth.device) for value, truth in zip(other, oracle, strict=True)]
            # its NaN and infinities need not stand where the reference's do
            errors = map(_finite, map(error_of, specs, values, reference, oracle))
            found = [one.largest(more) for one, more in zip(found, errors, strict=True)]
        return tuple(found)

    def drawn_again(self, arguments: list[Any]) -> tuple[Errors, ...]:
        """Find the reference's errors on inputs a unit in the last place from a call's: the second largest of `DRAWS`.

        Rounding is chance. Of an output of many elements one draw tells how large it is; of one element that cancels it may happen to be
        nothing. The largest is left out: a step that one draw happens to cross is no lack of digits.
        """
        draws = []
        for turn in range(DRAWS):
            # where many elements are equal, so are their errors, unless each is moved by itself
            near = stepped(arguments, self._roundoff, alike=turn % 2 == 1)
            oracle = self.oracle.outputs(near)
            reference = [value.to(truth.device) for value, truth in zip(self.reference.outputs(near), oracle, strict=True)]
            draws.append([_finite(each) for each in self._own(partial(list, near), reference, oracle)])
        return tuple(Errors(*(sorted(kind)[-2] for kind in zip(*output, strict=True))) for output in zip(*draws, strict=True))

    def near(self, arguments: list[Any]) -> list[Any]:
        """Give inputs a unit in the last place from a call's."""
        return stepped(arguments, self._roundoff)

    def raised(self, limits: Sequence[Errors], own: Sequence[Errors]) -> list[Errors]:
        """Raise limits of one call to what these errors of the reference allow; a limit of zero stays."""
        none = (EXACT,) * len(own)
        allowed = map(numerics.limits, self.problem.abi.outputs, (self.problem.policy,) * len(own), own, none)
        return [limit if limit == EXACT else limit.largest(more) for limit, more in zip(limits, allowed, strict=True)]

    def _sensitivity(self, arguments: Arguments, distribution: str, moved: Any) -> tuple[Errors, ...]:
        """Errors of the oracle on inputs that are known no better than the declared precision."""
        if not self.problem.policy.keeps_inputs:
            return tuple(moved(self.oracle.outputs(all_rounded(arguments(), self._roundoff))))
        made_hard = distribution != AS_MADE
        # all moved upward: a sum moves by as much as it can, and so may a sum that is taken in another order
        draws = [moved(self.oracle.sensitivity(arguments, self._roundoff, upward=upward)) for upward in (False, made_hard)]
        # a step that one draw happens to cross is no lack of digits: the smaller counts; on inputs made to be hard, the larger
        choose = max if made_hard else min
        found = tuple(Errors(*map(choose, a, b)) for a, b in zip(*draws, strict=True))
        if distribution == "denormals":
            found = tuple(map(Errors.largest, found, moved(self.oracle.outputs(_flushed(arguments())))))
        return found

    def _exact(
        self, arguments: Arguments, distribution: str, oracle: list[torch.Tensor], reference: list[torch.Tensor]
    ) -> tuple[bool, ...]:
        import torch

        policy = self.problem.policy
        specs = self.problem.abi.outputs
        if not self._linear or distribution not in INTEGERS or not policy.keeps_inputs or policy.tolerance:
            return (False,) * len(specs)
        bounds = self.oracle.magnitudes(arguments())
        return tuple(
            spec.is_float
            and bool((truth == truth.round()).all())
            and torch.equal(found.double(), truth)
            and bool((bound.abs() <= 0.25 / ROUNDOFF[spec.dtype]).all())
            for spec, truth, found, bound in zip(specs, oracle, reference, bounds, strict=True)
        )

    def limits(self, members: Sequence[Scale]) -> list[Errors]:
        """Say how wrong each output may be in a group of calls."""
        found = []
        for place, spec in enumerate(self.problem.abi.outputs):
            if all(member.exact[place] for member in members):
                found.append(EXACT)
                continue
            own, sensitivity = EXACT, EXACT
            for member in members:
                own = own.largest(_finite(member.own[place]))
                sensitivity = sensitivity.largest(_finite(member.sensitivity[place]))
            found.append(numerics.limits(spec, self.problem.policy, own, sensitivity))
        return found


def error_of(spec: TensorSpec, value: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor) -> Errors:
    """Measure one output: by distance, or by the share of wrong integers."""
    if spec.is_float:
        return numerics.distance(value, oracle, reference)
    return numerics.mismatch(value, reference, oracle)


def has_digits(limits: list[Errors]) -> bool:
    """Whether limits are such that right can be told from wrong."""
    return max(limit.relative_l2 for limit in limits) <= NO_DIGITS


def _flushed(arguments: list[Any]) -> list[Any]:
    """Put zeros where float arguments are too small for a normal number."""
    import torch

    def flush(value: torch.Tensor) -> torch.Tensor:
        wide = widened(value)
        return torch.where(wide.abs() < torch.finfo(value.dtype).tiny, torch.zeros_like(wide), wide).to(value.dtype)

    return [changed(v, flush) for v in arguments]


def _finite(errors: Errors) -> Errors:
    """Leave an infinite error out: it would allow anything."""
    return Errors(*(value if value < float("inf") else 0.0 for value in errors))
