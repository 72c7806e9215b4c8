"""What a search method can look up of a run: what can be done to a parent, and how a candidate is made and behaves."""

from __future__ import annotations

import math
from typing import Protocol

from pydantic import Field

from graphs.search.wishes import Answer, Wish, unanswered
from tools.records import Action, Record

NEUTRAL = 20.0
"""A score of 10 with no figure behind it counts as an expected gain of 1.5: a judgement, it only orders."""


class Offer(Record):
    """One step that is possible on a parent and was not tried yet."""

    action: Action
    score: float
    """How promising the planner finds it, from 0 to 10."""
    predicted_gain: float | None = None
    """Parent time over child time that recalled strategies or a model promise; None without such a figure."""
    difficulty: int = Field(default=2, ge=1, le=5)
    """How much of the kernel it changes."""
    rationale: str = ""
    strategies: tuple[str, ...] = ()
    """Ids of the strategies it rests on."""
    planner: str = "builtin"

    @property
    def group(self) -> str:
        """Kind and region: what macro thinking chooses among."""
        return f"{self.action.kind} {self.action.region}"

    @property
    def expected_gain(self) -> float:
        """The predicted gain, or else one that the score stands for."""
        return self.predicted_gain if self.predicted_gain is not None else 1.0 + max(self.score, 0.0) / NEUTRAL


class Portrait(Record):
    """How a passing candidate is made and behaves; 0 where a figure could not be read."""

    candidate: str
    signature: str = ""
    """Which strategy it embodies: launches, library calls, warps, stages, tensor cores."""
    lines: int = 0
    """Lines of its source that are not blank."""
    time_us: float = 0.0
    registers: float = 0.0
    shared_bytes: float = 0.0
    threads: float = 0.0
    """Threads a program of its heaviest kernel."""
    occupancy: float = 0.0
    saturation: dict[str, float] = Field(default_factory=dict)
    """Share of each resource's ceiling in use: `sm`, `dram`, `l2`; one that could not be read is left out."""

    @property
    def cell(self) -> str:
        """Quality-diversity cell: strategy signature and code complexity, never the score."""
        return f"{self.signature}|{round(2 * math.log2(max(self.lines, 1)))}"


class Archive(Protocol):
    """Read access to a run, shared by every method that works on it."""

    @property
    def designs(self) -> bool:
        """Whether the run's coder takes rewrites, which no survey can list in full."""

    def offers(self, parent: str, *, fresh: bool = False, rated: bool = False) -> tuple[Offer, ...] | None:
        """Steps not tried on `parent`, best first; None without a survey (`fresh`: of this round, `rated`: by the planner)."""

    def answer(self, wish: Wish) -> Answer | None:
        """What came of a wish; None where it was not granted yet."""

    def portrait(self, candidate: str) -> Portrait:
        """How a candidate that passed is made and behaves."""


class NoArchive:
    """Knows nothing: for methods that need no look-up, and for opening one only to check its settings."""

    designs = False

    def offers(self, parent: str, *, fresh: bool = False, rated: bool = False) -> tuple[Offer, ...] | None:
        """Nothing was surveyed."""
        return None

    def answer(self, wish: Wish) -> Answer | None:
        """Nobody is there to ask."""
        return unanswered(wish)

    def portrait(self, candidate: str) -> Portrait:
        """Only the name is known."""
        return Portrait(candidate=candidate)
