"""What a forked run knows of its beginning: the candidate of another run that it starts from, and what led to it there."""

from __future__ import annotations

from agents.coder.protocol import Draft
from tools.records import Action, Record, Tier
from tools.tracing import RunStore

FORK = "fork"
"""Kind and name of the record, and who planned the candidate that a fork begins at."""


class Fork(Record):
    """Where a run was forked from."""

    run: str
    """Name of the run."""
    candidate: str
    """Its candidate; the fork's first has the same id."""
    draft: Draft
    coder: str
    """Who wrote it."""
    steps: tuple[Action, ...]
    """Actions from the reference to it, in that run."""
    rationale: str = ""
    """Why the last of them was taken; empty where it is not known."""
    speedup: float | None = None
    """Its speed-up there; None where it has none."""
    tier: Tier | None = None
    """Of that speed-up."""
    judged: bool = False
    """Whether its evaluation was taken along; else it is judged anew."""

    @property
    def words(self) -> str:
        """Say where it comes from and how fast it was there."""
        fast = f", {self.speedup:.2f}x there ({self.tier})" if self.speedup else ""
        return f"candidate {self.candidate} of {self.run}{fast}"


def fork_of(store: RunStore) -> Fork | None:
    """Where a run was forked from; None for a run that began at its reference."""
    return store.get(FORK, FORK, Fork)


def fork_rationale(fork: Fork) -> str:
    """Say why a fork's first candidate is there."""
    steps = f", which {len(fork.steps)} steps had led to" if len(fork.steps) > 1 else ""
    last = f" Its last step there: {fork.rationale}" if fork.rationale else ""
    return f"The run begins at {fork.words}{steps}.{last}"
