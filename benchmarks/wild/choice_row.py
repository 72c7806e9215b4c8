"""One operator's first choices and their times, and the table of many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tools.records import Record

FAR = 0.05
"""Relative L2 difference from eager beyond which a choice is taken to be wrong: half precision differs by a hundredth."""
SLOWER = 1.02
"""Factor from which on a choice counts as slower than the better baseline."""


class TimedChoice(Record):
    """One choice."""

    made: str
    modelled_us: float
    us: float | None = None
    """Median; None where it could not be run."""
    difference: float | None = None
    """Relative L2 from eager or, where that is nearer, from float64, the largest of all outputs."""
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether it ran and is near eager."""
        return self.us is not None and self.difference is not None and self.difference <= FAR


class ChoicesRow(Record):
    """One operator."""

    operator: str
    why: str = ""
    """Why there is nothing; empty where there is."""
    eager_us: float | None = None
    compile_us: float | None = None
    """None where torch.compile is missing."""
    missing: str = ""
    """Why it is; empty where it was timed."""
    choices: tuple[TimedChoice, ...] = ()

    @property
    def baseline_us(self) -> float:
        """The better one."""
        return min(us for us in (self.eager_us, self.compile_us) if us)

    @property
    def best(self) -> str:
        """The gain of its best choice in words: a user keeps the reference where none counts."""
        return f"{max(self.gains):.2f}x" if any(self.gains) else "no choice counts" if self.choices else "no choice"

    @property
    def gains(self) -> tuple[float, ...]:
        """Baseline over time of each choice that counts, in their order; 0 for the others."""
        return tuple(self.baseline_us / one.us if one.counts and one.us else 0.0 for one in self.choices)


def table(rows: Sequence[ChoicesRow]) -> Iterator[str]:
    """Yield a line for each operator, then the geometric means; an operator without a faster choice counts as 1."""
    timed = sorted((row for row in rows if row.eager_us), key=lambda row: row.operator)
    for row in timed:
        choices = " ".join(f"{one.us:.0f}({one.modelled_us:.0f})" if one.us else f"-({one.modelled_us:.0f})" for one in row.choices)
        compiled = f"{row.compile_us:.0f}" if row.compile_us else "-"
        missing = f" ({row.missing})" if row.missing else ""
        yield f"{row.operator}: {row.best}; eager {row.eager_us:.0f}, compile {compiled}{missing}, choices {choices}"
    for row in rows:
        if row.why:
            yield f"{row.operator}: nothing; {row.why}"
    if timed:
        best = math.exp(sum(math.log(max(1.0, *row.gains, 1.0)) for row in timed) / len(timed))
        slower = sum(bool(row.gains) and row.gains[0] < 1 / SLOWER for row in timed)
        yield f"{len(timed)} operators: best choice {best:.2f}x in geometric mean, what loses counted as 1; first choice slower at {slower}"
