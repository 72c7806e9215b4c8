"""State of the loop: ids and small records only, so that a checkpoint stays small however long the run."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from graphs.run.merge import merge

STATE_VERSION = 2
"""Raised when a checkpoint of the version before could not be continued; `resume` refuses others."""


class OptimizeInput(TypedDict):
    """What starts a run; everything else comes from its settings."""

    run: str


class OptimizeState(TypedDict, total=False):
    """What the loop remembers between steps."""

    version: int
    run: str
    round: int
    search: str
    """The search method's own state, JSON."""
    asks: list[str]
    """This round's asks, JSON."""
    plans: list[str]
    """This round's plan ids."""
    tags: dict[str, str]
    """Plan id to the tag of the ask it belongs to."""
    barren: list[str]
    """This round's asks for which the planner found nothing, JSON."""
    results: Annotated[dict[str, str], merge]
    """Plan id to the candidate it ended with; empty string where the coder refused."""
    champion: str
    """Fastest passing candidate so far, or ROOT."""
    evaluated: int
    """Evaluations by the end of the last round."""
    idle: int
    """Rounds in a row whose plans led to nothing that had to be evaluated."""
    ended: str
    """Why the search ended; empty while it goes on."""
    delivered: str
    """Candidate delivered, or ROOT."""


class OptimizeOutput(TypedDict):
    """What a run ends with."""

    run: str
    delivered: str
    ended: str
