"""Memory-augmented rollouts (after KernelBlaster's MAIC-RL): several trajectories, each step drawn by the gain that memory expects."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from graphs.search.archive import Offer
from graphs.search.draws import weighted
from graphs.search.protocol import Ask, Told
from graphs.search.tactic import Tactic, View
from graphs.search.wishes import Reflected, ReflectWish
from tools.records import ROOT, Record, Verdict

NEAR = 0.2
"""A prediction within this share of the measured gain counts as right."""


class MemoryOptions(Record):
    """Settings of memory-augmented rollouts."""

    steps: int = Field(default=5, ge=1)
    """Steps of one trajectory."""
    power: float = Field(default=3.0, ge=0)
    """Exponent of the weight: 0 draws uniformly, a large one nearly greedily."""
    top: int = Field(default=8, ge=1)
    """Only the most promising steps are drawn from."""
    floor: float = Field(default=0.02, gt=0)
    """Least expected gain, above 1, that a step counts with: nothing is impossible."""
    failures: int = Field(default=2, ge=1)
    """Failed steps that end a trajectory."""
    reflect_every: int = Field(default=3, ge=0)
    """Trajectories that end between two passes of memory over its lessons, as in the release's own script; 0: no passes."""
    rewrites: int = Field(default=4, ge=1)
    """Lessons rewritten by one pass, at most."""


class Rollout(Record):
    """One trajectory under way."""

    number: int
    at: str
    step: int = 0
    failed: int = 0


class MemoryState(Record):
    """Trajectories under way by lane, and what they earned."""

    lanes: dict[str, Rollout] = Field(default_factory=dict)
    rollouts: int = 0
    """Highest trajectory number given."""
    rewards: tuple[tuple[int, float], ...] = ()
    """Trajectory number and reward of every step."""
    passes: int = 0
    """Passes of memory over its lessons so far."""


class MemoryRollouts(Tactic[MemoryOptions, MemoryState]):
    """Lanes move in step, and every round's recall sees what all lanes learnt in the rounds before."""

    name = "memory"
    Options = MemoryOptions
    State = MemoryState

    def prepare(self, view: View) -> None:
        """Between batches of trajectories let memory rewrite what they gainsay: the textual gradient."""
        active = sum(not self._over(one) for one in self.state.lanes.values())
        ended = self.state.rollouts - active
        due = ended // self.options.reflect_every if self.options.reflect_every else 0
        if due > self.state.passes:
            number = self.state.passes + 1
            view.answer(ReflectWish(name=f"reflect {number}", number=number, most=self.options.rewrites), Reflected)
            self.update(passes=due)

    def ask(self, view: View) -> tuple[Ask, ...]:
        """One fully given step a lane, drawn from a survey with this round's knowledge."""
        taken: set[tuple[str, str]] = set()
        asks, number = [], self.state.rollouts
        for lane in map(str, range(view.batch)):
            rollout = self.state.lanes.get(lane)
            chosen = self._draw(view, rollout, taken) if rollout and not self._over(rollout) else None
            if rollout is None or chosen is None:
                number += 1
                rollout, chosen = self._begin(view, number, taken)
            if rollout is not None and chosen is not None:
                taken.add((rollout.at, chosen.action.id))
                asks.append(Ask(parent=rollout.at, action=chosen.action, tag=f"{lane}/{rollout.number}/{rollout.step}/{rollout.failed}"))
        return tuple(asks)

    def tell(self, view: View, fresh: Sequence[Told]) -> None:
        """Reward each step and go on from what passed, faster or not; the graph's learn node has taught memory by then."""
        lanes, rewards, rollouts = dict(self.state.lanes), list(self.state.rewards), self.state.rollouts
        for told in fresh:
            if not told.tag or not told.plan:
                continue
            lane, number, step, failed = told.tag.split("/")
            passed = told.verdict is Verdict.PASS
            lanes[lane] = Rollout(
                number=int(number),
                at=told.candidate if passed else told.parent,
                step=int(step) + 1,
                failed=int(failed) + (not passed),
            )
            rollouts = max(rollouts, int(number))
            rewards.append((int(number), rollout_reward(view.ledger.gain(told), told.predicted_gain)))
        self.update(lanes=lanes, rewards=tuple(rewards), rollouts=rollouts)

    def _over(self, rollout: Rollout) -> bool:
        return rollout.step >= self.options.steps or rollout.failed >= self.options.failures

    def _begin(self, view: View, number: int, taken: set[tuple[str, str]]) -> tuple[Rollout | None, Offer | None]:
        """Start at the reference while it has steps, else at the fastest right version that has."""
        ranked = view.ledger.ranked()
        for start in sorted(ranked, key=lambda name: name != ROOT):
            rollout = Rollout(number=number, at=start)
            chosen = self._draw(view, rollout, taken)
            if chosen:
                return rollout, chosen
        return None, None

    def _draw(self, view: View, rollout: Rollout, taken: set[tuple[str, str]]) -> Offer | None:
        if view.archive.offers(rollout.at) == ():
            return None
        offers = [o for o in view.offers(rollout.at, fresh=True) if (rollout.at, o.action.id) not in taken]
        if not offers:
            return None
        best = sorted(offers, key=lambda o: (-o.expected_gain, -o.score))[: self.options.top]
        weights = [max(o.expected_gain - 1.0, self.options.floor) ** self.options.power for o in best]
        return weighted(view.rng(self.name, rollout.number, rollout.step), best, weights)


def rollout_reward(gain: float, predicted: float | None) -> float:
    """Fractional change, more for a prediction that held, less for a miss and for a step back; a failure counts as a step back."""
    change = gain - 1.0 if gain > 0 else 0.0
    foresight = 0.0
    if predicted is not None and gain > 0:
        miss = abs(predicted - gain) / gain
        foresight = 0.2 if miss <= NEAR else -0.1 * min(miss, 1.0)
    return round(change + foresight - (0.5 if gain < 1.0 else 0.0), 4)
