"""Evolution (after Kernel-Smith's agent): islands of quality-diversity cells, elites, migration, and programs shown as inspiration."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pydantic import Field

from graphs.search.draws import weighted
from graphs.search.islands import Islands
from graphs.search.protocol import Ask, Told
from graphs.search.tactic import Tactic, View
from tools.records import ROOT, Record, Verdict


class EvolutionOptions(Record):
    """Settings of evolution; the counts are OpenEvolve's defaults where it has them and the budget allows."""

    islands: int = Field(default=3, ge=1, le=16)
    elite: float = Field(default=0.1, ge=0)
    """Weight of taking the parent from the best of all islands."""
    explore: float = Field(default=0.2, ge=0)
    """Weight of taking any program of the island."""
    exploit: float = Field(default=0.7, ge=0)
    """Weight of taking one of the island's elites."""
    elites: int = Field(default=2, ge=1)
    """The fastest programs of an island count as its elites."""
    top: int = Field(default=3, ge=0)
    """Top programs shown to the planner."""
    diverse: int = Field(default=2, ge=0)
    """Programs of other cells shown to the planner."""
    crossover: float = Field(default=0.2, ge=0, le=1)
    """Chance of a second parent, whose steps are worth taking over."""
    migrate_every: int = Field(default=12, ge=1)
    """Programs entered between two migrations."""
    migrate_share: float = Field(default=0.1, gt=0, le=1)
    """Share of each island that is copied to the next, at least one."""


class EvolutionState(Record):
    """The archive."""

    islands: Islands | None = None
    entered: int = 0
    """Programs entered so far."""


class Evolution(Tactic[EvolutionOptions, EvolutionState]):
    """Islands take turns; each draws a parent among elites, all of its cells, or the best of all."""

    name = "evolution"
    Options = EvolutionOptions
    State = EvolutionState

    def ask(self, view: View) -> tuple[Ask, ...]:
        """One plan an island in turn."""
        turn = len(view.ledger.plans)
        asks = [self._island_ask(view, (turn + slot) % self.options.islands, slot) for slot in range(view.batch)]
        return tuple(ask for ask in asks if ask)

    def tell(self, view: View, fresh: Sequence[Told]) -> None:
        """Let each new program compete for its cell on the island of its ask, or else of its parent; migrate when due."""
        islands, entered = self._islands(), self.state.entered
        for told in fresh:
            if told.verdict is not Verdict.PASS or told.candidate not in view.ledger.speedups or told.candidate in islands.home:
                continue
            island = int(told.tag) if told.tag.isdigit() else islands.home.get(told.parent, 0)
            islands = islands.entered(told.candidate, island, view.archive.portrait(told.candidate).cell, view.ledger.speedups)
            entered += 1
            if entered % self.options.migrate_every == 0:
                islands = islands.migrated(self.options.migrate_share, view.ledger.speedups)
        self.update(islands=islands, entered=entered)

    def _islands(self) -> Islands:
        return self.state.islands or Islands.empty(self.options.islands)

    def _island_ask(self, view: View, island: int, slot: int) -> Ask | None:
        rng = view.rng(self.name, slot)
        fertile = view.ledger.ranked()
        if not fertile:
            return None
        members = self._islands().members(island, view.ledger.speedups)
        parent = self._parent(rng, [name for name in members if name in fertile], fertile)
        mates = [name for name in members if name != parent]
        mate = (rng.choice(mates),) if mates and rng.random() < self.options.crossover else ()
        top, diverse = self._shown(rng, members, parent)
        return Ask(parent=parent, mates=mate, inspirations=top, diverse=diverse, tag=str(island))

    def _parent(self, rng: Random, members: list[str], fertile: list[str]) -> str:
        """An island without programs starts from the reference, and so does a share of the exploration."""
        if not members:
            return ROOT if ROOT in fertile else rng.choice(fertile)
        how = weighted(rng, ("elite", "explore", "exploit"), (self.options.elite, self.options.explore, self.options.exploit))
        if how == "elite":
            return fertile[0]
        if how == "explore":
            return rng.choice([*members, *[ROOT] * (ROOT in fertile)])
        return rng.choice(members[: self.options.elites])

    def _shown(self, rng: Random, members: list[str], parent: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The island's top programs, and some of its other cells."""
        others = [name for name in members if name != parent]
        top, rest = others[: self.options.top], others[self.options.top :]
        return tuple(top), tuple(rng.sample(rest, min(self.options.diverse, len(rest))))
