"""The protocol every search method speaks: ask which parents to work on, tell what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from pydantic import Field

from tools.records import ActionKind, Record, Verdict


class SearchSettings(Record):
    """Settings that every method understands."""

    width: int = Field(default=2, ge=1)
    """How many candidates are kept as parents."""
    batch: int = Field(default=2, ge=1)
    """How many plans a round may have in flight."""
    patience: int = Field(default=4, ge=0)
    """Rounds without a better candidate before the search ends; 0 means never."""
    seed: int = 0
    """For methods that draw at random."""


class Ask(Record):
    """What a method wants next: plans for one parent."""

    parent: str
    """Candidate id, or ROOT."""
    plans: int
    """How many, at most."""
    kinds: tuple[ActionKind, ...] = ()
    """The action must be of one of these; empty means any."""
    inspirations: tuple[str, ...] = ()
    """Other candidates worth showing to the planner."""


class Told(Record):
    """What came of one plan, or that a parent has no plan left."""

    parent: str
    plan: str = ""
    """Plan id; empty where the planner found nothing left to try on `parent`."""
    candidate: str = ""
    """Candidate id; empty where the coder refused."""
    verdict: Verdict | None = None
    """None where there was nothing to evaluate."""
    speedup: float = 0.0
    """Best baseline time over the candidate's, both of one session and one tier; 0 where it did not pass."""
    accepted: bool = False
    """Whether the reviewer accepted it as faster than its parent."""


class SearchMethod(Protocol):
    """Chooses parents; deterministic for the same settings and the same tells."""

    @classmethod
    def open(cls, settings: SearchSettings, state: str) -> Self:
        """Start fresh where `state` is empty, else continue from what `dump` gave."""

    def ask(self) -> tuple[Ask, ...]:
        """Return the next round's asks; none where the search is over."""

    def tell(self, results: Sequence[Told]) -> None:
        """Learn what the last round's asks led to; repeating a result changes nothing."""

    def dump(self) -> str:
        """Return the state as JSON."""
