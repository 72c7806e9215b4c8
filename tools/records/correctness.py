"""How wrong the outputs of a candidate are, and how wrong they may be."""

from __future__ import annotations

from typing import Literal

from tools.records.base import Record


class OutputError(Record):
    """Worst errors of one output over all checked calls, against the float64 oracle."""

    output: str
    relative_l2: float
    """‖candidate − oracle‖₂ / ‖oracle‖₂; infinity where finiteness differs."""
    worst_row: float
    """Largest over rows of the last dimension of ‖row error‖₂ / max(‖oracle row‖₂, rms row norm of the oracle)."""
    reference_relative_l2: float
    """The reference's own error at its declared precision."""
    reference_worst_row: float
    limit_relative_l2: float
    """What the policy allows here."""
    limit_worst_row: float

    @property
    def passed(self) -> bool:
        """Whether both errors are within their limits; NaN never passes."""
        return self.relative_l2 <= self.limit_relative_l2 and self.worst_row <= self.limit_worst_row

    @property
    def severity(self) -> float:
        """How far it is beyond its limits: above 1 it fails; infinity for NaN."""
        ratios = []
        for value, limit in ((self.relative_l2, self.limit_relative_l2), (self.worst_row, self.limit_worst_row)):
            ratio = value / limit if limit > 0 else (0.0 if value == 0 else float("inf"))
            ratios.append(ratio if ratio == ratio else float("inf"))  # noqa: PLR0124 - NaN is the only value unequal to itself
        return max(ratios)


class WrongElement(Record):
    """One element that is off."""

    index: tuple[int, ...]
    expected: float
    """The oracle's."""
    got: float


class WrongOutput(Record):
    """Where one output of one call is off: for whoever wrote it. Seeds of a call are drawn anew for each evaluation."""

    output: str
    shape: tuple[int, ...]
    size: str = ""
    """As in `Correctness.sizes`."""
    inputs: str = ""
    """Name of the distribution."""
    wrong: int
    """Elements whose error is beyond the limit times their row's magnitude."""
    elements: int
    box: tuple[tuple[int, int], ...]
    """First and last index of wrong elements along each dimension."""
    first: tuple[WrongElement, ...]
    factor: float | None = None
    """What came over what is right, where that is nearly the same for all wrong elements."""


class Correctness(Record):
    """What was checked and how far off it was."""

    outputs: tuple[OutputError, ...]
    calls: int
    """Calls with fresh inputs whose outputs were judged."""
    sizes: tuple[str, ...]
    """The sizes checked, e.g. `as written`, `rows=37, columns=129`."""
    executor: Literal["gpu", "interpreter"]
    emulated: tuple[str, ...] = ()
    """Dtypes of its kernels that the interpreter does not know: their values were held in float32 and rounded as a GPU rounds them."""
    wrong: tuple[WrongOutput, ...] = ()
    """Of a candidate that is wrong: the first outputs that are off, of different sizes or distributions."""
