"""The records that only the loop writes: what was recalled for a parent, and what the run delivers."""

from __future__ import annotations

from knowledge.records import Recalled
from tools.records import Record


class Recall(Record):
    """What memory brought up for one parent in one round; its name in the store is `<round>/<parent>`."""

    recalled: tuple[Recalled, ...]


class Delivery(Record):
    """How a run ended: what the user gets, and why."""

    candidate: str
    """Candidate id, or ROOT for "keep the reference"."""
    evaluation: str
    """Key of the confirming evaluation; empty for ROOT."""
    reason: str
    """One sentence."""
    ended: str
    """Why the search ended."""
