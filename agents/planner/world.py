"""What a keeper of a tree of decisions tells a planner, and the edits it gets back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from agents.planner.protocol import Briefing
from tools.records import Action, Record


class Decision(Record):
    """One node of the tree."""

    id: int
    parent: int
    action: Action | None
    """None for the reference, and for a solution that came about without a decision of its own."""
    state: Literal["open", "closed", "failed"]
    """open: not tried. closed: solved, and never changed again. failed: tried, and nothing right came of it."""
    solution: str = ""
    score: float
    """How promising, from 0 to 10."""
    gain: float
    """Expected parent time over child time; measured, once it is closed."""
    confidence: float
    difficulty: int


class Ended(Record):
    """The refinement that has just ended."""

    node: int
    expected: float
    """Gain that was expected of it."""
    measured: float | None
    """Parent time over the best candidate's time; None where nothing was right."""
    attempts: int
    """Attempts in a row that brought nothing at its end."""
    second: str = ""
    """Best candidate that embodies another strategy; empty where there is none."""
    second_gain: float = 0.0


class TreeCase(Record):
    """All that a planner sees when it is to edit a tree."""

    name: str
    """Of this edit within the run."""
    briefing: Briefing
    """Of the solution of the node `focus`: what is listed there may be opened below it."""
    focus: int
    """New decisions are opened below this node."""
    nodes: tuple[Decision, ...]
    ended: Ended | None
    """None where the tree is opened."""
    most: int
    """Open decisions below one node."""


class TreeEdit(Record):
    """One edit; which fields count depends on its kind."""

    edit: Literal["insert", "update", "split", "prune"]
    node: int
    """insert: the node to open a decision below. The others: the node to change."""
    action: Action | None = None
    """insert."""
    score: float | None = None
    """insert, update."""
    gain: float | None = None
    """insert, update."""
    confidence: float | None = None
    """update."""
    difficulty: int | None = None
    """insert."""
    reason: str = ""


class TreeEdits(Record):
    """What came of asking a planner for edits; with everything empty no planner was asked."""

    edits: tuple[TreeEdit, ...] = ()
    """Those that are valid, in order."""
    by: str = ""
    """The model; empty: the keeper's rules edit, as the planner has no words for trees."""
    refused: tuple[str, ...] = ()
    """Edits that stayed invalid after they were sent back, each with its fault."""
    reason: str = ""
    """Why the rules edit in the model's place; empty where they do not."""


Check: TypeAlias = Callable[[Sequence[TreeEdit]], tuple[tuple[TreeEdit, ...], tuple[str, ...]]]
"""The keeper's validation: the edits that can be made one after the other, and a sentence on each that cannot, or on what is missing."""


@runtime_checkable
class TreeEditor(Protocol):
    """A planner that can edit trees; the built-in one leaves that to the keeper's rules."""

    async def edit(self, case: TreeCase, check: Check) -> TreeEdits:
        """Return the edits to make; invalid ones are mended or refused, never made."""
