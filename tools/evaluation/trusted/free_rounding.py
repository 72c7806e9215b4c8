"""Holds a call on inputs made to be hard against a reference that is rounded otherwise: where that has no digits, none can be asked for.

Eager's float32 may hit by luck what others miss: `sumsq / n - mean * mean` of equal elements is 0, and with one rounding less it is not.
How far the reference goes is asked element by element, so that none has the slack of another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tools.evaluation.trusted.choices import Choices, Choosing, Part, is_masked, made_by
from tools.evaluation.trusted.free_order import Held, Span
from tools.evaluation.trusted.nudged import Nudged, may_nudge
from tools.evaluation.trusted.numerics import EXACT, Errors
from tools.evaluation.trusted.poles import Poles
from tools.evaluation.trusted.rerounding import Rerounded
from tools.evaluation.trusted.tolerance import Tolerance, Truth, error_of
from tools.evaluation.wire.distributions import AS_MADE
from tools.records import TensorSpec

if TYPE_CHECKING:
    import torch

ROUNDS = 4
"""How often more runs of the reference are added while a candidate is wrong."""
DRAWS = 8
"""Runs that are added: one step that happens to move nothing, or a clamp, hides an element from half of them and more."""
MIXED = 40
"""Runs in which each float is moved up or down by chance before it is rounded, at most: two codes in a byte may lie at edges each."""
PATIENCE = 10
"""Such runs that explain nothing more: then what is left is wrong."""
BEYOND = 4.0
"""By how many limits an element is moved that has no digits: limits are of root mean squares, and the largest of many draws is not."""
LIMIT_S = 10.0
"""No further run is begun after that."""


def chooses(spec: TensorSpec) -> bool:
    """Whether an output is whole numbers, which may say what was chosen; truth values are none."""
    return not spec.is_float and spec.dtype != "bool"


class FreeRounding:
    """One call of which the outputs are wrong by the reference's own rounding."""

    def __init__(self, tolerance: Tolerance, arguments: Callable[[], list[Any]], distribution: str) -> None:
        """Run oracle and reference on what `arguments` gives."""
        self._tolerance, self._arguments = tolerance, arguments
        self._truth = tolerance.truth(arguments, distribution, sensitive=False)
        self._specs = tolerance.problem.abi.outputs
        own = {place: self._truth.reference[place].double() for place, spec in enumerate(self._specs) if spec.is_float}
        self._spans = {place: Span(value, value) for place, value in own.items()}
        self._places, self._masked, self._count = self._made() if any(map(chooses, self._specs)) else ({}, frozenset[int](), 1)
        self._choices = {place: Choices(self._truth.reference[place]) for place in self._places}
        others = (place for place, spec in enumerate(self._specs) if chooses(spec) and place not in self._places)
        self._counted = {place: Choices(self._truth.reference[place]) for place in others}
        """Other whole numbers: floats that were rounded, and choices that have one other number where they are masked."""
        self._distribution, self._made_hard = distribution, distribution != AS_MADE
        self._poles = Poles()
        self._ends = time.monotonic() + LIMIT_S

    def held(self, runs: Sequence[Sequence[torch.Tensor]], limits: Sequence[Errors]) -> list[Held]:
        """Hold each run's outputs; elements where the reference itself may be off by more than `limits` count as right near its span."""
        found: list[Held] = []
        self._nudge(runs)
        for _ in range(ROUNDS):
            self._draw()
            found = [self._exchanged(run, limits) for run in runs]
            if all(error.within(limit) for one in found for error, limit in zip(one.errors, limits, strict=True)):
                break
        return found

    def _nudge(self, runs: Sequence[Sequence[torch.Tensor]]) -> None:
        """Move what is rounded up, then down, then each element by chance while that explains more of what the runs have."""
        if not self._counted:
            return
        follows, idle, left = not may_nudge(self._tolerance.problem.work.operators), 0, 0
        for way in (1, -1, *((0,) * MIXED)):
            if way == 0:
                before, left = left, self._unexplained(runs)
                idle = idle + 1 if left == before else 0
                if not left or idle > PATIENCE or time.monotonic() > self._ends:
                    return
            try:
                with Nudged(way, follows=follows):
                    others = self._tolerance.oracle.outputs(self._arguments())
            except (RuntimeError, ValueError, IndexError, ArithmeticError):
                return
            for place, choices in self._counted.items():
                choices.met(others[place])

    def _unexplained(self, runs: Sequence[Sequence[torch.Tensor]]) -> int:
        """Count whole numbers in runs that no run of the reference has given."""
        own = self._truth.reference
        held = [(run[place] == own[place].to(run[place])) | each.holds(run[place]) for run in runs for place, each in self._counted.items()]
        return sum(int((~one).sum()) for one in held)

    def _draw(self) -> None:
        for turn in range(DRAWS):
            if time.monotonic() > self._ends:
                return
            given = self._arguments()
            # what a product inside of one operator rounds is seen on inputs beside these alone
            beside = bool(self._choices) and turn % 2 == 1
            try:
                with nullcontext() if beside else Rerounded(self._poles):
                    others = self._tolerance.reference.outputs(self._tolerance.near(given) if beside else given)
            except (RuntimeError, ValueError, IndexError, ArithmeticError):
                # what the reference does not stand, or what there is no room for, frees nothing more
                self._ends = 0.0
                return
            self._spans = {place: span.met(others[place].to(span.least.device)) for place, span in self._spans.items()}
            for place, choices in (*self._choices.items(), *((place, self._counted[place]) for place in self._masked)):
                choices.met(others[place])

    def _exchanged(self, run: Sequence[torch.Tensor], limits: Sequence[Errors]) -> Held:
        """Put what is right into the elements of a run that no rounding of the reference determines better."""
        import torch

        truth, shares = self._truth, [0.0] * len(run)
        plain, (run, counted) = run, self._as_counted(run)
        values = list(run)
        for place, choices in self._choices.items():
            free = choices.holds(run[place])
            values[place] = torch.where(free, run[place], truth.reference[place])
            shares[place] = float(free.double().mean()) if free.numel() else 0.0
        shares = [max(both) for both in zip(shares, counted, strict=True)]
        if any(shares[place] for place in self._choices):
            truth = self._chosen({place: values[place] for place in self._choices})
            # what follows from a choice is now as the candidate has it
            both = (map(error_of, self._specs, each, truth.reference, truth.oracle) for each in (plain, run))
            errors = tuple(map(min, *both))
            if not self._made_hard or all(map(Errors.within, errors, limits)):
                return Held(truth, errors, tuple(shares))
        values = list(run)
        if not self._made_hard:
            return Held(truth, tuple(map(error_of, self._specs, run, truth.reference, truth.oracle)), tuple(shares))
        for place, (spec, limit) in enumerate(zip(self._specs, limits, strict=True)):
            if spec.is_float and limit != EXACT and run[place].numel():
                free = self.free(place, limit) & self._spans[place].is_near(run[place])
                values[place] = torch.where(free, truth.oracle[place].to(run[place].dtype), run[place])
                shares[place] = float(free.double().mean())
        return Held(truth, tuple(map(error_of, self._specs, values, truth.reference, truth.oracle)), tuple(shares))

    def _as_counted(self, run: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[float]]:
        """Put the reference's own into a run's whole numbers that it might have given as well; and by output, the share of these."""
        import torch

        values, shares = list(run), [0.0] * len(run)
        for place, choices in self._counted.items():
            free = choices.holds(run[place])
            values[place] = torch.where(free, self._truth.reference[place].to(run[place]), run[place])
            shares[place] = float(free.double().mean()) if free.numel() else 0.0
        return values, shares

    def _made(self) -> tuple[dict[int, tuple[Part, ...]], frozenset[int], int]:
        """Find which outputs are choices, or hold several, which of the others are masked ones, and how many choices there are."""
        given = self._arguments()
        with Choosing() as own:
            plain = self._tolerance.reference.outputs(given)
        places = made_by(plain, own.met)
        masked = (place for place, spec in enumerate(self._specs) if chooses(spec) and place not in places)
        return places, frozenset(place for place in masked if is_masked(plain[place], own.met)), len(own.met)

    def _chosen(self, choices: dict[int, torch.Tensor]) -> Truth:
        """Run oracle and reference with these choices in place of their own."""
        chosen = {part.number: part.of(value) for place, value in choices.items() for part in self._places[place]}
        with Choosing(chosen, self._count):
            return self._tolerance.truth(self._arguments, self._distribution, sensitive=False)

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
