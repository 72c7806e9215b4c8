"""Holds a call's outputs against a reference whose equal elements stand in the candidate's order, for any order of them is right.

What comes of it is as strict as before: whoever names an element twice, or a smaller one, is as wrong as ever. Where the candidate's
order cannot be seen in its outputs, what depends on the order is left out, and all else is judged: whole numbers one by one, and floats
that many orders tell apart, where they lie near the span of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tools.evaluation.trusted.numerics import Errors
from tools.evaluation.trusted.ties import Ordering, Reordered
from tools.evaluation.trusted.tolerance import Tolerance, Truth, error_of
from tools.evaluation.wire.distributions import AS_MADE

if TYPE_CHECKING:
    import torch

SHUFFLED = 7
"""Orders that are drawn, beside the reference's own and its reverse, to see which whole numbers depend on them."""
SHUFFLED_FLOATS = 30
"""Orders that are drawn for floats: the few that a row may have are nearly all met, and of many the span is known."""
BEYOND = 4.0
"""Times the reference's largest error in a row, by which two elements may differ and a right kernel turn them round."""
APART = 1e-6
"""Of a row's largest element: by less, two orders only round differently."""


class Held(NamedTuple):
    """What one run of a call is held against, and what was found."""

    truth: Truth
    errors: tuple[Errors, ...]
    """By output."""
    left_out: tuple[float, ...]
    """By output: the share of its elements that depend on an order that cannot be seen, or on how the reference happens to round."""


class Span(NamedTuple):
    """The least and the largest that orders of equal elements have given for each element of a float output."""

    least: torch.Tensor
    largest: torch.Tensor

    def met(self, other: torch.Tensor) -> Self:
        """Take another order's output in."""
        return type(self)(self.least.minimum(other), self.largest.maximum(other))

    def holds(self, value: torch.Tensor, *, by_row: bool) -> torch.Tensor:
        """Mark what another order may have given: elements that depend on the order, no further from their span than that is wide.

        `by_row`: elements of a row share their order, and the widest says how far one may lie that no order that was drawn has moved.
        """
        width, scale = self.largest - self.least, self.largest.abs().maximum(self.least.abs())
        if by_row and width.dim() > 1:
            # elements of a list share no order
            width, scale = (one.amax(-1, keepdim=True) for one in (width, scale))
        return (width > APART * scale) & self._is_within(value, width)

    def is_near(self, value: torch.Tensor) -> torch.Tensor:
        """Mark elements no further from their span than that is wide."""
        return self._is_within(value, self.largest - self.least)

    def _is_within(self, value: torch.Tensor, further: torch.Tensor) -> torch.Tensor:
        exact = value.double()
        return (exact >= self.least - further) & (exact <= self.largest + further)


class FreeOrder:
    """One call of which the outputs are wrong by the reference's own order."""

    def __init__(self, tolerance: Tolerance, arguments: Callable[[], list[Any]], distribution: str) -> None:
        """Look what the reference puts in order, and which of that its outputs show."""
        self._tolerance, self._arguments, self._distribution = tolerance, arguments, distribution
        self._specs = tolerance.problem.abi.outputs
        met: list[tuple[Ordering, torch.Tensor]] = []
        exact: list[Ordering] = []
        given = arguments()
        with Reordered(lambda _, ordering, indices: met.append((ordering, indices))):
            self._plain = tolerance.reference.outputs(given)
        given = arguments()
        with Reordered(lambda _, ordering, __: exact.append(ordering)):
            tolerance.oracle.outputs(given)
        self._apart = _apart([ordering for ordering, _ in met], exact, _shortest(tolerance))
        met = [(ordering._replace(apart=apart), indices) for (ordering, indices), apart in zip(met, self._apart, strict=True)]
        self.has_ties = any(ordering.has_ties() for ordering, _ in met)
        """Whether another order of equal elements is right, too."""
        self._shown = [shown_in(self._plain, ordering, indices) for ordering, indices in met] if self.has_ties else []
        self._all_shown = all(place is not None for place, (ordering, _) in zip(self._shown, met, strict=False) if ordering.has_ties())

    def held(self, run: Sequence[torch.Tensor], limits: Sequence[Errors]) -> Held:
        """Hold one run's outputs against the reference in their own order; what is within its limit is not looked at further."""

        def named(number: int, ordering: Ordering, indices: torch.Tensor) -> torch.Tensor | None:
            # oracle and reference, and each way of running it, meet the same orderings
            place = self._shown[number % len(self._shown)]
            laid = None if place is None else _laid(run[place], ordering, indices)
            return None if laid is None else _ranks(ordering, laid)

        with Reordered(named, self._apart):
            truth = self._tolerance.truth(self._arguments, self._distribution, sensitive=False)
        errors = tuple(map(error_of, self._specs, run, truth.reference, truth.oracle))
        if self._all_shown:
            return Held(truth, errors, (0.0,) * len(errors))
        places = range(len(run))
        kept = [(errors[at], 0.0) if errors[at].within(limits[at]) else self._without_order(at, run[at], truth) for at in places]
        return Held(truth, tuple(error for error, _ in kept), tuple(share for _, share in kept))

    def _without_order(self, place: int, value: torch.Tensor, truth: Truth) -> tuple[Errors, float]:
        """Leave out of an output what depends on the order of equal elements."""
        import torch

        spec, reference, oracle = self._specs[place], truth.reference[place], truth.oracle[place]
        # inputs as they are made have few equal elements: one of them frees no others of its row
        by_row = self._distribution != AS_MADE
        loose = self._spans[place].holds(value, by_row=by_row) if spec.is_float else self._loose[place].to(value.device)
        right = oracle.to(value.dtype) if spec.is_float else reference
        return error_of(spec, torch.where(loose, right, value), reference, oracle), float(loose.double().mean())

    @cached_property
    def _spans(self) -> dict[int, Span]:
        """By place of a float output: what other orders of equal elements give, in float64."""
        found: dict[int, Span] = {}
        for turn in range(1 + SHUFFLED_FLOATS):
            given = self._arguments()
            with Reordered(_shuffled(turn)):
                others = self._tolerance.oracle.outputs(given)
            for place, spec in enumerate(self._specs):
                if spec.is_float:
                    found[place] = found[place].met(others[place]) if turn else Span(others[place], others[place])
        return found

    @cached_property
    def _loose(self) -> list[torch.Tensor]:
        """By output: where another order of equal elements gives another number."""
        import torch

        found = [torch.zeros_like(value, dtype=torch.bool) for value in self._plain]
        for turn in range(1 + SHUFFLED):
            given = self._arguments()
            with Reordered(_shuffled(turn)):
                others = self._tolerance.reference.outputs(given)
            found = [mask | (other != value) for mask, other, value in zip(found, others, self._plain, strict=True)]
        return found


def _shortest(tolerance: Tolerance) -> float:
    """Roundoff of the shortest float format among what the problem is given; 0 where none is."""
    specs = (*tolerance.problem.abi.inputs, *tolerance.problem.abi.parameters)
    return max((tolerance.roundoff(spec.dtype) for spec in specs if spec.is_float), default=0.0)


def _apart(rounded: Sequence[Ordering], exact: Sequence[Ordering], roundoff: float) -> list[torch.Tensor | None]:
    """By ordering, what the reference's own error in a row decides: a candidate may be a few times as far off, and so may two elements.

    The largest error counts: rounded to half precision, the largest elements, which are picked, are off by many times what others are.

    An ordering of what another one chose may have other elements in exact arithmetic: no row's error counts for more than rounding makes.
    """
    found: list[torch.Tensor | None] = []
    for place, one in enumerate(rounded):
        other = exact[place] if len(exact) == len(rounded) else None
        if other is None or not one.x.is_floating_point() or one.x.shape != other.x.shape:
            found.append(None)
            continue
        x = one.x.double()
        error = (x - other.x.double().to(x.device)).nan_to_num(0.0, 0.0, 0.0)
        most = 2 * roundoff * x.nan_to_num(0.0, 0.0, 0.0).abs().amax(one.dim, keepdim=True)
        found.append(BEYOND * error.abs().amax(one.dim, keepdim=True).minimum(most))
    return found


def shown_in(outputs: Sequence[torch.Tensor], ordering: Ordering, indices: torch.Tensor) -> int | None:
    """Find the output that is an ordering's indices, or as many of the first ones as it has room for; None where there is none."""
    import torch

    for place, value in enumerate(outputs):
        laid = None if value.is_floating_point() else _laid(value, ordering, indices)
        if laid is not None and torch.equal(laid, indices.narrow(ordering.dim, 0, laid.shape[ordering.dim])):
            return place
    return None


def _laid(value: torch.Tensor, ordering: Ordering, indices: torch.Tensor) -> torch.Tensor | None:
    """Lay an output out as indices are, of which it may have the first ones alone; None where it has another shape.

    Indices into a whole tensor, counted row by row, name the same elements.
    """
    named = value.shape[ordering.dim] if value.dim() == indices.dim() else 0
    first = [named if at == ordering.dim else size for at, size in enumerate(indices.shape)]
    if value.numel() == indices.numel():
        value = value.reshape(indices.shape)
    elif named > ordering.picked or list(value.shape) != first:
        return None
    return value.to(indices).remainder(ordering.length)


def _ranks(ordering: Ordering, named: torch.Tensor) -> torch.Tensor:
    """Rank elements as they are named along the ordered dimension; those that are not come last."""
    import torch

    places = torch.arange(named.shape[ordering.dim], device=named.device)
    ranks = torch.full(ordering.x.shape, ordering.length, device=named.device)
    return ranks.scatter_(ordering.dim, named, ordering.along(places))


def _shuffled(turn: int) -> Callable[[int, Ordering, torch.Tensor], torch.Tensor]:
    """Rank equal elements from the last to the first, and at each further turn by chance."""
    import torch

    def ranks(_: int, ordering: Ordering, indices: torch.Tensor) -> torch.Tensor:
        if turn == 0:
            return ordering.along(torch.arange(ordering.length - 1, -1, -1, device=indices.device))
        return torch.rand(ordering.x.shape, device=indices.device).argsort(ordering.dim)

    return ranks
