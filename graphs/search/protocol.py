"""The protocol every search method speaks: ask which parents to work on and how, tell what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic import Field

from graphs.search.wishes import Wish
from tools.records import Action, ActionKind, Record, Verdict


class SearchSettings(Record):
    """Settings that every method understands, and the chosen method's own."""

    width: int = Field(default=2, ge=1)
    """How many candidates greedy search keeps as parents."""
    batch: int = Field(default=2, ge=1)
    """How many plans a round may have in flight."""
    patience: int = Field(default=4, ge=0)
    """Rounds without a better candidate before greedy search ends; 0 means never. The other methods run to their budget."""
    seed: int = 0
    """For methods that draw at random: the same seed, tells and planner give the same asks."""
    options: dict[str, str] = Field(default_factory=dict)
    """The method's own settings by name, as the user wrote them; the method's page lists them."""


class Ask(Record):
    """What a method wants next: plans for one parent, with a constraint on the action from none to fully given."""

    parent: str
    """Candidate id, or ROOT."""
    plans: int = Field(default=1, ge=1)
    """How many, at most."""
    kinds: tuple[ActionKind, ...] = ()
    """The action must be of one of these; empty means any."""
    regions: tuple[str, ...] = ()
    """The action must apply to one of these; empty means any."""
    action: Action | None = None
    """The very action; the planner then has nothing left to choose."""
    mates: tuple[str, ...] = ()
    """Further parents: steps that led to them are worth taking over."""
    inspirations: tuple[str, ...] = ()
    """Other candidates worth showing to planner and coder, the most telling first."""
    diverse: tuple[str, ...] = ()
    """Candidates of other strategies, shown after them because they differ."""
    tag: str = ""
    """Comes back with the results, so that a method knows which of its threads they belong to."""

    @property
    def constrained(self) -> bool:
        """Whether fewer than all actions on the parent would do."""
        return bool(self.kinds or self.regions or self.action)


class Told(Record):
    """What came of one plan, or that an ask could not be met."""

    parent: str
    plan: str = ""
    """Plan id; empty where the planner found nothing left to try on `parent` within the ask's constraint."""
    candidate: str = ""
    """Candidate id; empty where the coder refused."""
    verdict: Verdict | None = None
    """None where there was nothing to evaluate."""
    speedup: float = 0.0
    """Best baseline time over the candidate's, both of one session and one tier; 0 where it did not pass."""
    accepted: bool = False
    """Whether the reviewer accepted it as faster than its parent."""
    kind: ActionKind | None = None
    """Of the plan's action."""
    region: str = ""
    """Of the plan's action."""
    predicted_gain: float | None = None
    """Of the plan."""
    constrained: bool = False
    """Whether the ask had a constraint: without a plan, only that constraint is exhausted, not the parent."""
    tag: str = ""
    """Of the ask."""


class Survey(Record):
    """A wish: list and rate every step that is possible on a parent."""

    parent: str
    """Candidate id, or ROOT."""
    rated: bool = True
    """Whether the run's planner is asked; without, the steps come with the built-in prior only, which costs no model call."""
    fresh: bool = False
    """Whether a survey of an earlier round is too old: knowledge may have changed since."""


class SearchMethod(Protocol):
    """Chooses parents and actions; deterministic for the same settings, tells and surveys."""

    def scout(self) -> tuple[Survey | Wish, ...]:
        """Name the surveys, and what else the next ask needs and the archive lacks; called until there is nothing.

        A method may prepare its state by what was surveyed, so dump it after the last call and before the ask.
        """

    def ask(self) -> tuple[Ask, ...]:
        """Return the next round's asks; none where the search is over. Asking changes nothing."""

    def tell(self, results: Sequence[Told]) -> None:
        """Learn what the last round's asks led to; repeating a result changes nothing."""

    def reason(self) -> str:
        """Say why `ask` has nothing more to ask for."""

    def dump(self) -> str:
        """Return the state as JSON."""
