"""Random search, the baseline: any right version, any step that was not tried on it."""

from __future__ import annotations

from graphs.search.archive import Offer
from graphs.search.protocol import Ask
from graphs.search.tactic import Nothing, Tactic, View


class Uniform(Tactic[Nothing, Nothing]):
    """Draw a parent uniformly, then one of its untried steps uniformly; nothing is learnt."""

    name = "random"
    Options = Nothing
    State = Nothing

    def ask(self, view: View) -> tuple[Ask, ...]:
        """Draw a batch without repeats."""
        rng = view.rng(self.name)
        pool = view.ledger.fertile()
        picked: dict[tuple[str, str], Ask] = {}
        while pool and len(picked) < view.batch:
            parent = rng.choice(pool)
            left = [o for o in view.offers(parent, rated=False) if (parent, o.action.id) not in picked]
            if left:
                chosen: Offer = rng.choice(left)
                picked[parent, chosen.action.id] = Ask(parent=parent, action=chosen.action)
            else:
                pool.remove(parent)
        return tuple(picked.values())
