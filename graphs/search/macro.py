"""Macro thinking (after QiMeng-Kernel's MTMC): one atomic step at a time on the current kernel, drawn by a policy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from agents.planner.weigh import LETTERS, Step, Weights
from graphs.search.archive import Offer
from graphs.search.draws import softmax, weighted
from graphs.search.macro_policy import MODEL, STOP, MacroChoice, MacroStep, Observation, find_policy, reward
from graphs.search.protocol import Ask, Told
from graphs.search.tactic import Tactic, View
from graphs.search.wishes import WeighWish
from tools.records import ROOT, Record, Verdict, content_hash

HISTORY = 3
"""Steps of the episode that a policy is shown."""


class MacroOptions(Record):
    """Settings of macro thinking."""

    policy: str = "planner"
    """`planner`, `uniform`, `model` (a language model's token probabilities), or a trained policy as MODULE:FACTORY."""
    temperature: float = Field(default=1.5, gt=0)
    """Of the softmax over scores from 0 to 10."""
    steps: int = Field(default=8, ge=1)
    """Most steps of an episode."""
    penalty: float = Field(default=0.05, ge=0)
    """Taken off the reward for each step taken before."""
    repeat: float = Field(default=2.0, ge=0)
    """Taken off the score of the kind and region that the last step changed."""
    stop: float = 1.0
    """Score of ending an episode before its first step; it cannot be drawn there, and grows with the steps."""
    restart: str = Field(default="best", pattern="^(best|reference)$")
    """Where a new episode begins: the fastest right version that has steps left, or the reference while it has."""


class Episode(Record):
    """One episode under way."""

    number: int
    at: str
    """The current kernel: the last right version."""
    step: int = 0


class MacroState(Record):
    """Episodes under way by lane, and the trajectory so far."""

    lanes: dict[str, Episode] = Field(default_factory=dict)
    episodes: int = 0
    """Highest episode number given."""
    steps: tuple[MacroStep, ...] = ()


class Macro(Tactic[MacroOptions, MacroState]):
    """Each lane of the batch is an episode: list kinds and regions, score, draw, apply, go on from the last right version."""

    name = "macro"
    Options = MacroOptions
    State = MacroState

    def ask(self, view: View) -> tuple[Ask, ...]:
        """One fully given step a lane."""
        taken: set[tuple[str, str]] = set()
        asks = []
        number = self.state.episodes
        for lane in map(str, range(view.batch)):
            episode = self.state.lanes.get(lane)
            chosen = self._step(view, episode, taken) if episode and episode.step < self.options.steps else None
            if episode is None or chosen is None:
                number += 1
                episode, chosen = self._begin(view, number, taken)
            if episode is not None and chosen is not None:
                taken.add((episode.at, chosen.action.id))
                asks.append(Ask(parent=episode.at, action=chosen.action, tag=f"{lane}/{episode.number}/{episode.step}"))
        return tuple(asks)

    def tell(self, view: View, fresh: Sequence[Told]) -> None:
        """Record each step and move its episode on; a step that failed leaves it at the last right version."""
        lanes, steps, episodes = dict(self.state.lanes), list(self.state.steps), self.state.episodes
        for told in fresh:
            if not told.tag or not told.plan:
                continue
            lane, number, step = told.tag.split("/")
            passed = told.verdict is Verdict.PASS
            lanes[lane] = Episode(number=int(number), at=told.candidate if passed else told.parent, step=int(step) + 1)
            episodes = max(episodes, int(number))
            gained = reward(told.verdict, view.ledger.gain(told), int(step), self.options.penalty)
            group = f"{told.kind} {told.region}"
            steps.append(
                MacroStep(episode=int(number), step=int(step), parent=told.parent, group=group, candidate=told.candidate, reward=gained)
            )
        self.update(lanes=lanes, steps=tuple(steps), episodes=episodes)

    def _begin(self, view: View, number: int, taken: set[tuple[str, str]]) -> tuple[Episode | None, Offer | None]:
        """Open an episode at the first right version that still has a step."""
        starts = view.ledger.ranked()
        if self.options.restart == "reference" and ROOT in starts:
            starts = [ROOT, *(name for name in starts if name != ROOT)]
        for start in starts:
            episode = Episode(number=number, at=start)
            chosen = self._step(view, episode, taken)
            if chosen:
                return episode, chosen
        return None, None

    def _step(self, view: View, episode: Episode, taken: set[tuple[str, str]]) -> Offer | None:
        """Draw a kind and region by the policy and take its best step; None for stop or where nothing is left."""
        offers = view.offers(episode.at, rated=self.options.policy not in ("uniform", MODEL))
        best: dict[str, Offer] = {}
        for offer in sorted(offers, key=lambda one: -one.score):
            if (episode.at, offer.action.id) not in taken:
                best.setdefault(offer.group, offer)
        if not best:
            return None
        choices = [MacroChoice(group=group, best=offer) for group, offer in best.items()]
        choices += [MacroChoice(group=STOP)] * (episode.step > 0)
        return weighted(view.rng(self.name, episode.number, episode.step), choices, self._weights(view, episode, choices)).best

    def _weights(self, view: View, episode: Episode, choices: Sequence[MacroChoice]) -> list[float]:
        history = tuple(one for one in self.state.steps if one.episode == episode.number)[-HISTORY:]
        seen = Observation(
            kernel=episode.at,
            step=episode.step,
            speedup=view.ledger.speedups[episode.at],
            signature="" if episode.at == ROOT else view.archive.portrait(episode.at).signature,
            history=history,
        )
        scores = self._asked(view, seen, choices) or find_policy(self.options.policy, self.options.stop).scores(seen, choices)
        last = history[-1].group if history else ""
        lowered = [score - self.options.repeat * (one.group == last) for score, one in zip(scores, choices, strict=True)]
        return softmax(lowered, self.options.temperature)

    def _asked(self, view: View, seen: Observation, choices: Sequence[MacroChoice]) -> list[float]:
        """The language model's scores, as the planner's protocol gives them; empty where it is not asked, or gave nothing."""
        if self.options.policy != MODEL or len(choices) < 2:
            return []
        put = sorted(choices, key=lambda one: (one.group != STOP, -one.best.score if one.best else 0.0))[: len(LETTERS)]
        wish = WeighWish(
            name=f"weigh {content_hash(seen.kernel, *map(str, seen.history), *(one.group for one in put))}",
            parent=seen.kernel,
            groups=tuple(one.group for one in put),
            actions=tuple(one.best.action if one.best else None for one in put),
            history=tuple(Step(group=one.group, reward=one.reward) for one in seen.history),
        )
        scores = view.answer(wish, Weights).scores
        # what was not put to the model cannot be drawn
        return [scores.get(one.group, -math.inf) for one in choices] if scores else []
