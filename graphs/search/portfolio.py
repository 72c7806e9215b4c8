"""Portfolio: a bandit over the methods themselves by gain per evaluation, all on one ledger and one archive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydantic import Field, JsonValue

from graphs.search.protocol import Ask, SearchSettings, Told
from graphs.search.tactic import Tactic, View
from tools.errors import UserError
from tools.records import Record, Verdict

SEPARATOR = ":"


class PortfolioOptions(Record):
    """Settings of the portfolio; `METHOD.NAME=VALUE` sets one of a member."""

    methods: str = "greedy,macro,evolution,world-model,memory,bandit,tree"
    """Members, separated by commas."""
    exploration: float = Field(default=1.0, ge=0)
    """Weight of the confidence term beside mean rewards between 0 and 1."""


class PortfolioState(Record):
    """What each member remembers, and what it earned."""

    members: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    pulls: dict[str, int] = Field(default_factory=dict)
    """Results by member."""
    earned: dict[str, float] = Field(default_factory=dict)
    """Sum of what each member's results added to the logarithm of the best speed-up."""
    best: float = 1.0
    """Best speed-up before this round."""


class Portfolio(Tactic[PortfolioOptions, PortfolioState]):
    """Each plan of the batch goes to the member with the highest bound; a member without an ask leaves its turn to the next."""

    name = "portfolio"
    Options = PortfolioOptions
    State = PortfolioState

    def __init__(self, settings: SearchSettings, own: dict[str, JsonValue]) -> None:
        """Open every member with its own settings and state."""
        mine = {name: value for name, value in settings.options.items() if "." not in name}
        super().__init__(settings.model_copy(update={"options": mine}), own)
        names = [name.strip() for name in self.options.methods.split(",")]
        _check(names, settings.options)
        self._members = {name: self._open(name, settings) for name in names}

    def prepare(self, view: View) -> None:
        """Let every member prepare."""
        for member in self._members.values():
            member.prepare(view)

    def ask(self, view: View) -> tuple[Ask, ...]:
        """Share the batch out, then let each member ask for its share."""
        asks: dict[str, tuple[Ask, ...]] = {}
        resting: set[str] = set()
        shares: dict[str, int] = {}
        while (wanted := view.batch - sum(a.plans for given in asks.values() for a in given)) > 0:
            name = self._next(shares, resting)
            if name is None:
                break
            tried = _limited(self._members[name].ask(view.with_batch(shares.get(name, 0) + 1)), shares.get(name, 0) + 1)
            before = sum(a.plans for a in asks.get(name, ()))
            gained = sum(a.plans for a in tried) - before
            if gained <= 0 or gained > wanted:
                resting.add(name)
                continue
            shares[name] = shares.get(name, 0) + 1
            asks[name] = tried
        return tuple(a.model_copy(update={"tag": f"{name}{SEPARATOR}{a.tag}"}) for name, given in asks.items() for a in given)

    def tell(self, view: View, fresh: Sequence[Told]) -> None:
        """Tell every member everything, with a tag only where it was its own ask; pay whoever raised the best."""
        pulls, earned, best = dict(self.state.pulls), dict(self.state.earned), self.state.best
        for told in fresh:
            owner = told.tag.partition(SEPARATOR)[0]
            if told.plan:
                pulls[owner] = pulls.get(owner, 0) + 1
            if told.verdict is Verdict.PASS and told.speedup > self.state.best:
                earned[owner] = round(earned.get(owner, 0.0) + math.log(told.speedup / self.state.best), 6)
                best = max(best, told.speedup)
        for name, member in self._members.items():
            member.tell(view, tuple(_addressed(told, name) for told in fresh))
        self.update(pulls=pulls, earned=earned, best=round(best, 6))

    def reason(self, view: View) -> str:
        """What every member says."""
        said: dict[str, None] = dict.fromkeys(member.reason(view) for member in self._members.values())
        return "; ".join(said)

    def dump(self) -> dict[str, Any]:
        """Return the own state with the members' in it."""
        self.update(members={name: member.dump() for name, member in self._members.items()})
        return super().dump()

    def _open(self, name: str, settings: SearchSettings) -> Tactic[Any, Any]:
        from graphs.search import find_tactic

        prefix = f"{name}."
        options = {key.removeprefix(prefix): value for key, value in settings.options.items() if key.startswith(prefix)}
        # a member that rests has no plans of its own: patience is the whole run's business
        own = settings.model_copy(update={"options": options, "patience": 0})
        member: Tactic[Any, Any] = find_tactic(name)(own, dict(self.state.members.get(name, {})))
        return member

    def _next(self, shares: dict[str, int], resting: set[str]) -> str | None:
        """The member with the highest bound on its share of the gain; those never pulled first, in their order."""
        awake = [name for name in self._members if name not in resting]
        if not awake:
            return None
        rates = {name: self.state.earned.get(name, 0.0) / max(self.state.pulls.get(name, 0), 1) for name in self._members}
        top = max(rates.values()) or 1.0
        total = sum(self.state.pulls.values()) + sum(shares.values())
        return max(awake, key=lambda name: (self._bound(rates[name] / top, name, shares, total), -list(self._members).index(name)))

    def _bound(self, mean: float, name: str, shares: dict[str, int], total: int) -> float:
        count = self.state.pulls.get(name, 0) + shares.get(name, 0)
        return math.inf if count == 0 else mean + self.options.exploration * math.sqrt(math.log(1 + total) / count)


def _check(names: Sequence[str], options: dict[str, str]) -> None:
    if Portfolio.name in names:
        raise UserError("A portfolio cannot be a member of a portfolio.", "Leave it out of --search-set methods=….")
    strangers = [key for key in options if "." in key and key.partition(".")[0] not in names]
    if strangers:
        raise UserError(f"{strangers[0]} sets something of a method that is not in the portfolio.", f"Its members: {', '.join(names)}.")


def _limited(asks: Sequence[Ask], plans: int) -> tuple[Ask, ...]:
    """The first `plans` plans of the asks."""
    result = []
    for ask in asks:
        if plans <= 0:
            break
        result.append(ask if ask.plans <= plans else ask.model_copy(update={"plans": plans}))
        plans -= ask.plans
    return tuple(result)


def _addressed(told: Told, name: str) -> Told:
    owner, _, tag = told.tag.partition(SEPARATOR)
    return told.model_copy(update={"tag": tag if owner == name else ""})
