"""What a search method may wish for beside a survey: words of the planner, or a pass of memory over its lessons.

A tactic never asks a model itself. It names a wish; the graph grants it once, keeps the answer under the wish's name, and the archive
gives it back. Where nobody is there to ask, as in a simulation, the answer is the record's default.
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from agents.planner.weigh import Step, Weights
from agents.planner.world import Ended, TreeEdits
from graphs.search.world_tree import WorldTree
from tools.records import Action, Record


class EditWish(Record):
    """Let the planner edit a tree of decisions."""

    name: str
    """Unique in the run."""
    parent: str
    """Solution of the node `focus`: what the planner is shown."""
    focus: int
    """Node below which decisions may be opened."""
    tree: WorldTree
    ended: Ended | None = None
    """What has been measured; None where the tree is opened."""


class ReflectWish(Record):
    """Let memory rewrite what this run's outcomes gainsay."""

    name: str
    """Unique in the run."""
    number: int
    """Counts from 1."""
    most: int
    """Lessons rewritten at most: with a language model each costs a call."""


class WeighWish(Record):
    """Let the planner weigh what may be done next."""

    name: str
    """Unique in the run."""
    parent: str
    groups: tuple[str, ...]
    """The most promising by the planner's rating first."""
    actions: tuple[Action | None, ...]
    """What would be done for each; None for stopping."""
    history: tuple[Step, ...]


class Reflected(Record):
    """What a pass of memory did."""

    rewritten: tuple[str, ...] = ()
    """Ids of strategies."""


Wish: TypeAlias = EditWish | ReflectWish | WeighWish
Answer: TypeAlias = TreeEdits | Reflected | Weights
AnswerT = TypeVar("AnswerT", bound=Record)


def unanswered(wish: Wish) -> Answer:
    """The answer where nobody is there to ask."""
    if isinstance(wish, ReflectWish):
        return Reflected()
    return Weights() if isinstance(wish, WeighWish) else TreeEdits()
