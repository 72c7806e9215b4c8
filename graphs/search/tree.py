"""Tree search (after STARK): epsilon-greedy over all attempts, with a throttled root, dead branches and a bias to leaves."""

from __future__ import annotations

from pydantic import Field

from graphs.search.draws import weighted
from graphs.search.protocol import Ask
from graphs.search.tactic import Nothing, Tactic, View
from tools.records import ROOT, Record


class TreeOptions(Record):
    """Settings of tree search; the first four are the paper's."""

    epsilon: float = Field(default=0.3, ge=0, le=1)
    """Chance to explore instead of taking the fastest."""
    root_limit: int = Field(default=5, ge=1)
    """Plans on the reference before it is throttled."""
    dead_after: int = Field(default=3, ge=1)
    """Failures on a version without a right child before its branch counts as dead."""
    window: int = Field(default=5, ge=0)
    """Most other candidates shown to the planner: leaders, then children."""
    leaders: int = Field(default=2, ge=0)
    """How many of the fastest are shown."""
    leaf_bias: float = Field(default=1.5, gt=0)
    """Weight of a version without children beside one with, when exploring."""


class Tree(Tactic[TreeOptions, Nothing]):
    """Each plan of the batch takes the fastest version left, or with chance epsilon any, leaves preferred."""

    name = "tree"
    Options = TreeOptions
    State = Nothing

    def ask(self, view: View) -> tuple[Ask, ...]:
        """Different parents in one batch as far as there are."""
        live = self._live(view)
        if not live:
            return ()
        chosen: dict[str, int] = {}
        for slot in range(view.batch):
            rng = view.rng(self.name, slot)
            left = [name for name in live if name not in chosen] or live
            explore = rng.random() < self.options.epsilon
            parent = weighted(rng, left, [self._weight(view, name) for name in left]) if explore else left[0]
            chosen[parent] = chosen.get(parent, 0) + 1
        return tuple(Ask(parent=name, plans=plans, inspirations=self._window(view, name)) for name, plans in chosen.items())

    def _live(self, view: View) -> list[str]:
        """Versions that may be parents, the fastest first; what was throttled or pruned comes back only where nothing else is left."""
        ledger, parents = view.ledger, set(view.ledger.parents.values())
        fertile = ledger.ranked()
        dead = {name for name in fertile if ledger.failures.get(name, 0) >= self.options.dead_after and name not in parents}
        throttled = {ROOT} if ledger.expanded.get(ROOT, 0) >= self.options.root_limit else set()
        return [name for name in fertile if name not in dead | throttled] or [name for name in fertile if name not in dead] or fertile

    def _weight(self, view: View, name: str) -> float:
        return 1.0 if view.ledger.expanded.get(name) else self.options.leaf_bias

    def _window(self, view: View, parent: str) -> tuple[str, ...]:
        """What the planner sees beside the parent: the leaders, then the parent's children, the fastest first."""
        ledger = view.ledger
        ranked = sorted(ledger.parents, key=lambda name: (-ledger.speedups[name], name))
        leaders = [name for name in ranked if name != parent][: self.options.leaders]
        children = [name for name in ranked if ledger.parents[name] == parent]
        return tuple(dict.fromkeys([*leaders, *children]))[: self.options.window]
