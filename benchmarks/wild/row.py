"""One line of results: how far one operator came, and what each stage took."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from tools.records import Record


class Ended(StrEnum):
    """How far an operator came."""

    RIGHT = "right"
    """The first choice has a kernel of ours, and the evaluator found it right at the small sizes."""
    LIBRARY = "library"
    """The first choice leaves everything to PyTorch's own kernels, and something could be generated."""
    UNREADABLE = "unreadable"
    """The file holds no problem that could be loaded."""
    NOT_TRACED = "not traced"
    """The reference could not be traced, or not within the limit."""
    NOTHING = "nothing generated"
    """No operator of it can be generated."""
    NOT_WRITTEN = "not written"
    """The first choice could not be emitted."""
    NOT_RIGHT = "not right"
    """The evaluator refused the first choice."""
    UNKNOWN = "not judged"
    """The evaluator could not say, or was not asked."""


class Left(Record):
    """An operator that no template generates."""

    operator: str
    """E.g. `aten.topk.default`."""
    reason: str


class WildRow(Record):
    """One operator at one of its sizes."""

    operator: str
    """Family and name."""
    part: str
    sizes: dict[str, int] = Field(default_factory=dict)
    """Changes to the sizes as written; none at those."""
    ended: Ended
    why: str = ""
    """What the stage that failed said."""
    generated: tuple[str, ...] = ()
    """Regions of the first choice that are ours: template and operators."""
    library: tuple[str, ...] = ()
    """Its regions that PyTorch's kernels run, without views."""
    left: tuple[Left, ...] = ()
    """Operators that cannot be generated at all."""
    choices: int = 0
    verdict: str = ""
    read_s: float = 0.0
    trace_s: float = 0.0
    """Tracing, choosing schedules included."""
    emit_s: float = 0.0
    judge_s: float = 0.0
    """Wall time, like the others, on a machine that others may use."""

    @property
    def total_s(self) -> float:
        """All stages."""
        return self.read_s + self.trace_s + self.emit_s + self.judge_s
