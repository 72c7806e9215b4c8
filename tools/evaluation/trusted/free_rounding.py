"""Holds a call on inputs made to be hard against a reference that is rounded otherwise: where that has no digits, none can be asked for.

Eager's float32 may hit by luck what others miss: `sumsq / n - mean * mean` of equal elements is 0, and with one rounding less it is not.
How far the reference goes is asked element by element, so that none has the slack of another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tools.evaluation.trusted.free_order import Held, Span
from tools.evaluation.trusted.numerics import EXACT, Errors
from tools.evaluation.trusted.poles import Poles
from tools.evaluation.trusted.rerounding import Rerounded
from tools.evaluation.trusted.tolerance import Tolerance, error_of

if TYPE_CHECKING:
    import torch

ROUNDS = 4
"""How often more runs of the reference are added while a candidate is wrong."""
DRAWS = 8
"""Runs that are added: one step that happens to move nothing, or a clamp, hides an element from half of them and more."""
BEYOND = 4.0
"""By how many limits an element is moved that has no digits: limits are of root mean squares, and the largest of many draws is not."""
LIMIT_S = 10.0
"""No further run is begun after that."""


class FreeRounding:
    """One call of which the outputs are wrong by the reference's own rounding."""

    def __init__(self, tolerance: Tolerance, arguments: Callable[[], list[Any]], distribution: str) -> None:
        """Run oracle and reference on what `arguments` gives."""
        self._tolerance, self._arguments = tolerance, arguments
        self._truth = tolerance.truth(arguments(), distribution, sensitive=False)
        self._specs = tolerance.problem.abi.outputs
        own = {place: self._truth.reference[place].double() for place, spec in enumerate(self._specs) if spec.is_float}
        self._spans = {place: Span(value, value) for place, value in own.items()}
        self._poles = Poles()
        self._ends = time.monotonic() + LIMIT_S

    def held(self, runs: Sequence[Sequence[torch.Tensor]], limits: Sequence[Errors]) -> list[Held]:
        """Hold each run's outputs; elements where the reference itself may be off by more than `limits` count as right near its span."""
        found: list[Held] = []
        for _ in range(ROUNDS):
            self._draw()
            found = [self._exchanged(run, limits) for run in runs]
            if all(error.within(limit) for one in found for error, limit in zip(one.errors, limits, strict=True)):
                break
        return found

    def _draw(self) -> None:
        for _ in range(DRAWS):
            if time.monotonic() > self._ends:
                return
            given = self._arguments()
            try:
                with Rerounded(self._poles):
                    others = self._tolerance.reference.outputs(given)
            except (RuntimeError, ValueError, IndexError, ArithmeticError):
                # what the reference does not stand, or what there is no room for, frees nothing more
                self._ends = 0.0
                return
            self._spans = {place: span.met(others[place].to(span.least.device)) for place, span in self._spans.items()}

    def _exchanged(self, run: Sequence[torch.Tensor], limits: Sequence[Errors]) -> Held:
        """Put what is right into the elements of a run that no rounding of the reference determines better."""
        import torch

        truth, values, shares = self._truth, list(run), [0.0] * len(run)
        for place, (spec, limit) in enumerate(zip(self._specs, limits, strict=True)):
            if spec.is_float and limit != EXACT and run[place].numel():
                free = self.free(place, limit) & self._spans[place].is_near(run[place])
                values[place] = torch.where(free, truth.oracle[place].to(run[place].dtype), run[place])
                shares[place] = float(free.double().mean())
        return Held(truth, tuple(map(error_of, self._specs, values, truth.reference, truth.oracle)), tuple(shares))

    def free(self, place: int, limit: Errors) -> torch.Tensor:
        """Mark elements that another rounding takes much further from the reference than the limit allows one of that magnitude.

        Magnitudes are the element's own, its row's and the typical one, whichever is largest. How far the reference is from the oracle
        makes no difference: a shorter format's error is in the limit, and frees no element beside.
        """
        import torch

        span, oracle, reference = (self._spans[place], *(value[place].double() for value in (self._truth.oracle, self._truth.reference)))
        finite = torch.isfinite(oracle) & torch.isfinite(span.least) & torch.isfinite(span.largest)
        truth = torch.where(finite, oracle, 0.0)
        rows = truth.square().mean(-1, keepdim=True) if truth.dim() else truth.square()
        magnitude = rows.clamp(min=float(truth.square().mean())).sqrt().maximum(truth.abs())
        moved = (span.largest - reference).maximum(reference - span.least)
        return finite & (moved > BEYOND * min(limit) * magnitude)
