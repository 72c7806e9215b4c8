"""State of one refinement."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from graphs.run.merge import merge


class RefineState(TypedDict, total=False):
    """Ids only: sources and records are in the run's store."""

    run: str
    plan: str
    """Plan id."""
    candidate: str
    """Candidate id; empty where the coder refused."""
    attempt: int
    """Repairs made."""
    evaluation: str
    """Key of the last evaluation."""
    verdict: str
    results: Annotated[dict[str, str], merge]
    """Plan id to the candidate it ended with."""


class RefineOutput(TypedDict):
    """What the loop gets back."""

    results: Annotated[dict[str, str], merge]
