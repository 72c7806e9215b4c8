"""Greedy search with a beam: always work on the best candidates so far."""

from __future__ import annotations

from graphs.search.protocol import Ask
from graphs.search.tactic import Nothing, Tactic, View
from tools.records import ROOT

FAR = 4.0
"""A parent this many times slower than the fastest is not worked on beside it: a step from there would have to gain as much first."""


class Greedy(Tactic[Nothing, Nothing]):
    """Keep the `width` fastest passing candidates; share each round's batch among them, the best first."""

    name = "greedy"
    Options = Nothing
    State = Nothing

    def ask(self, view: View) -> tuple[Ask, ...]:
        """Share the batch among the beam; its best member gets the remainder."""
        if self._patient_out(view):
            return ()
        parents = self._beam(view)[: view.batch]
        if not parents:
            return ()
        share, rest = divmod(view.batch, len(parents))
        return tuple(Ask(parent=parent, plans=share + (i < rest)) for i, parent in enumerate(parents))

    def reason(self, view: View) -> str:
        """Out of patience, or out of steps."""
        return f"no faster candidate in {view.ledger.stale} rounds" if self._patient_out(view) else self.nothing_left

    def _patient_out(self, view: View) -> bool:
        return bool(self.settings.patience) and view.ledger.stale >= self.settings.patience

    def _beam(self, view: View) -> list[str]:
        """The `width` fastest candidates that have steps left, and the reference last; none that is far behind the first."""
        ranked = [name for name in view.ledger.ranked() if name != ROOT]
        beam = ranked[: self.settings.width] + [ROOT] * (ROOT in view.ledger.fertile())
        speed = view.ledger.speedups
        return [name for name in beam if FAR * speed.get(name, 1.0) >= speed.get(beam[0], 1.0)]
