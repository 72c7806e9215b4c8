"""Greedy search with a beam: always work on the best candidates so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field

from graphs.search.protocol import Ask, SearchSettings, Told
from tools.records import ROOT, Record, Verdict


class GreedyState(Record):
    """What greedy search remembers."""

    speedups: dict[str, float] = Field(default_factory=lambda: {ROOT: 1.0})
    """Every passing candidate's speed-up; the reference is 1.0."""
    barren: tuple[str, ...] = ()
    """Parents with no plan left."""
    best: float = 0.0
    """Best speed-up of a passing candidate; below 1 while all are slower than the reference."""
    stale_rounds: int = 0
    """Rounds since `best` last rose."""


class Greedy:
    """Keep the `width` fastest passing candidates; share each round's batch among them, the best first."""

    def __init__(self, settings: SearchSettings, state: GreedyState) -> None:
        """Take settings and a state."""
        self._settings = settings
        self._state = state

    @classmethod
    def open(cls, settings: SearchSettings, state: str) -> Self:
        """Start fresh, or continue from the JSON of a state."""
        return cls(settings, GreedyState.model_validate_json(state) if state else GreedyState())

    def dump(self) -> str:
        """Return the state as JSON."""
        return self._state.model_dump_json()

    def ask(self) -> tuple[Ask, ...]:
        """Share the batch among the beam; its best member gets the remainder."""
        if self._settings.patience and self._state.stale_rounds >= self._settings.patience:
            return ()
        parents = self._beam()[: self._settings.batch]
        if not parents:
            return ()
        share, rest = divmod(self._settings.batch, len(parents))
        return tuple(Ask(parent=parent, plans=share + (i < rest)) for i, parent in enumerate(parents))

    def _beam(self) -> list[str]:
        """The `width` fastest candidates that are not barren; the reference comes last, whatever its rank."""
        fertile = {name: value for name, value in self._state.speedups.items() if name not in self._state.barren}
        ranked = sorted(fertile.keys() - {ROOT}, key=lambda name: (-fertile[name], name))
        return ranked[: self._settings.width] + [ROOT] * (ROOT in fertile)

    def tell(self, results: Sequence[Told]) -> None:
        """Fold a round's results into the state."""
        state = self._state
        passed = {t.candidate: t.speedup for t in results if t.verdict is Verdict.PASS}
        barren = dict.fromkeys([*state.barren, *(t.parent for t in results if not t.plan)])
        best = max([state.best, *passed.values()])
        tried = any(t.plan for t in results)
        self._state = GreedyState(
            speedups={**state.speedups, **passed},
            barren=tuple(barren),
            best=best,
            stale_rounds=0 if best > state.best else state.stale_rounds + tried,
        )
