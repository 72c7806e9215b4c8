"""Bandit search (after KernelBand): clusters of kernels times kinds of action, chosen by a masked upper confidence bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import and_

from pydantic import Field

from graphs.search.clusters import cluster, features
from graphs.search.draws import softmax, weighted
from graphs.search.protocol import Ask, Told
from graphs.search.tactic import Tactic, View
from tools.records import ROOT, ActionKind, Record, Verdict

KINDS = tuple(ActionKind)
RESOURCE = {
    ActionKind.TILING: "l2",
    ActionKind.VECTORISATION: "dram",
    ActionKind.FUSION: "dram",
    ActionKind.PIPELINE: "sm",
    ActionKind.REORDERING: "l2",
    ActionKind.LAYOUT: "dram",
    ActionKind.PRECISION: "sm",
    ActionKind.ALGORITHM: "dram",
    ActionKind.LAUNCH: "sm",
    ActionKind.REWRITE: "none",
}
"""The resource that each kind relieves. The paper's six strategies have theirs; reordering, which here orders tiles for the L2 cache, and
the kinds that the paper lacks have ours; a rewrite relieves none in particular."""


class BanditOptions(Record):
    """Settings of the bandit; all are the paper's."""

    clusters: int = Field(default=3, ge=1)
    every: int = Field(default=10, ge=1)
    """Candidates between two clusterings."""
    saturated: float = Field(default=0.75, gt=0, le=1)
    """A kind is masked where its resource is used to this share or more."""
    exploration: float = Field(default=2.0, ge=0)
    """Weight of the confidence term."""
    prior: float = 0.5
    """Initial mean of an arm, with a count of 1."""


class Pull(Record):
    """One result: whose arm was pulled, and what it gave."""

    parent: str
    kind: int
    """Index into the kinds."""
    reward: float


class BanditState(Record):
    """Pulls, clusters and what is exhausted."""

    pulls: tuple[Pull, ...] = ()
    labels: dict[str, int] = Field(default_factory=dict)
    """Cluster of each right version at the last clustering; newer ones have their parent's."""
    clustered: int = 0
    """Right versions at the last clustering."""
    barren: dict[str, int] = Field(default_factory=dict)
    """By parent, the kinds with no step left, as bits."""


class Bandit(Tactic[BanditOptions, BanditState]):
    """Choose cluster and kind by masked UCB, then the parent within the cluster by how little it uses the kind's resource."""

    name = "bandit"
    Options = BanditOptions
    State = BanditState
    nothing_left = "no kind of action is left on any right version"

    def ask(self, view: View) -> tuple[Ask, ...]:
        """Choose the batch's arms one after the other, each seen by the next as pulled once with its own mean."""
        pending: dict[tuple[int, int], int] = {}
        asks: dict[tuple[str, int], int] = {}
        for slot in range(view.batch):
            arm = self._arm(view, pending)
            if arm is None:
                break
            pending[arm] = pending.get(arm, 0) + 1
            parent = self._parent(view, arm, slot)
            asks[parent, arm[1]] = asks.get((parent, arm[1]), 0) + 1
        return tuple(Ask(parent=parent, plans=plans, kinds=(KINDS[kind],), tag=str(kind)) for (parent, kind), plans in asks.items())

    def tell(self, view: View, fresh: Sequence[Told]) -> None:
        """Reward the arms, note what is exhausted, cluster anew when due."""
        pulls, barren, labels = list(self.state.pulls), dict(self.state.barren), dict(self.state.labels)
        for told in fresh:
            if not told.plan and told.tag.isdigit():
                barren[told.parent] = barren.get(told.parent, 0) | 1 << int(told.tag)
            if told.plan and told.kind and told.verdict is not Verdict.INFRASTRUCTURE:
                gain = max(0.0, view.ledger.gain(told) - 1.0)
                pulls.append(Pull(parent=told.parent, kind=KINDS.index(told.kind), reward=round(gain, 4)))
            if told.candidate in view.ledger.speedups:
                labels.setdefault(told.candidate, labels.get(told.parent, 0))
        self.update(pulls=tuple(pulls), barren=barren, labels=labels)
        members = [name for name in view.ledger.speedups if name != ROOT]
        if len(members) >= max(2 * self.options.clusters, self.state.clustered + self.options.every * bool(self.state.clustered)):
            self._cluster(view, members)

    def _cluster(self, view: View, members: list[str]) -> None:
        """The reference, whose launches are many and not ours, stays a cluster of its own: 0."""
        found = cluster([features(view.archive.portrait(name)) for name in members], self.options.clusters)
        self.update(labels={name: label + 1 for name, label in zip(members, found, strict=True)}, clustered=len(members))

    def _arm(self, view: View, pending: dict[tuple[int, int], int]) -> tuple[int, int] | None:
        """The unmasked arm with the highest bound; ties go to the lower cluster and kind."""
        arms = self._arms(view)
        if not arms:
            return None
        counts: dict[tuple[int, int], int] = {}
        sums: dict[tuple[int, int], float] = {}
        for pull in self.state.pulls:
            arm = (self._label(pull.parent), pull.kind)
            counts[arm], sums[arm] = counts.get(arm, 0) + 1, sums.get(arm, 0.0) + pull.reward
        total = math.log(2 + len(self.state.pulls) + sum(pending.values()))

        def bound(arm: tuple[int, int]) -> float:
            count = 1 + counts.get(arm, 0)
            mean = (self.options.prior + sums.get(arm, 0.0)) / count
            return mean + self.options.exploration * math.sqrt(total / (count + pending.get(arm, 0)))

        return max(arms, key=lambda arm: (bound(arm), -arm[0], -arm[1]))

    def _arms(self, view: View) -> list[tuple[int, int]]:
        """The open arms of every cluster."""
        members: dict[int, list[str]] = {}
        for name in view.ledger.fertile():
            members.setdefault(self._label(name), []).append(name)
        fastest: dict[int, str] = {}
        for name in view.ledger.ranked():
            if name != ROOT:
                fastest.setdefault(self._label(name), name)
        return [(label, kind) for label in sorted(members) for kind in self._open(view, members[label], fastest.get(label, ""))]

    def _open(self, view: View, members: list[str], fastest: str) -> list[int]:
        """Kinds with a step left on a cluster's members, without those that its fastest one saturates as long as one stays."""
        barren = reduce(and_, (self.state.barren.get(name, 0) for name in members))
        left = [kind for kind in range(len(KINDS)) if not barren >> kind & 1]
        left = [kind for kind in left if KINDS[kind] is not ActionKind.REWRITE or view.archive.designs]
        used = view.archive.portrait(fastest).saturation if fastest else {}
        return [kind for kind in left if used.get(RESOURCE[KINDS[kind]], 0.0) < self.options.saturated] or left

    def _members(self, view: View, label: int, kind: int) -> list[str]:
        return [n for n in view.ledger.fertile() if self._label(n) == label and not self.state.barren.get(n, 0) >> kind & 1]

    def _parent(self, view: View, arm: tuple[int, int], slot: int) -> str:
        members = self._members(view, *arm)
        resource = RESOURCE[KINDS[arm[1]]]
        room = [self.options.saturated - (view.archive.portrait(n).saturation.get(resource, 0.0) if n != ROOT else 0.0) for n in members]
        return weighted(view.rng(self.name, slot), members, softmax(room, 1.0))

    def _label(self, name: str) -> int:
        return self.state.labels.get(name, 0)
