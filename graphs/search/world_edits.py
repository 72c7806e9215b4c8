"""The built-in edits of the world model: what to open below a solution, and what a measurement says of the decisions still open."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphs.search.archive import Offer
from graphs.search.world_tree import MOST_OPEN, Insert, Node, Prune, Update, WorldTree
from tools.records import ActionKind

KIND_RATE = 0.3
"""How far one measured decision moves what is believed of open decisions of its kind; a step of ours, no figure of the paper."""
HOPELESS = 0.5
"""An open decision with a lower score is pruned while its parent has another."""
ROOM = 8
"""Open nodes left free below the most, so that a new solution can get decisions of its own."""


def proposals(tree: WorldTree, node: Node, offers: Sequence[Offer], count: int) -> list[Insert]:
    """Best step of each kind and region first, so that siblings exclude one another; then further steps of the same."""
    known = {child.action.id for child in tree.children(node.id) if child.action}
    best: dict[str, Offer] = {}
    ranked = sorted(offers, key=lambda one: (-_score(one), one.difficulty, one.action.id))
    ranked = [one for one in ranked if one.action.id not in known]
    for offer in ranked:
        best.setdefault(offer.group, offer)
    rest = [one for one in ranked if best[one.group] is not one]
    return [
        Insert(parent=node.id, action=one.action, score=_score(one), gain=max(one.expected_gain, 0.01), difficulty=one.difficulty)
        for one in (*best.values(), *rest)[:count]
    ]


def beliefs(tree: WorldTree, measured: Node, gain: float) -> list[Update]:
    """Move what is believed of open decisions of the measured one's kind towards what was measured; a gain of 0 is a failure."""
    kind: ActionKind | None = measured.action.kind if measured.action else None
    surprise = math.log(gain / measured.gain) if gain > 0 else -1.0
    changed = []
    for one in tree.nodes:
        if one.state == "open" and one.id != measured.id and one.action and one.action.kind is kind:
            changed.append(
                Update(
                    node=one.id,
                    score=min(10.0, max(0.0, round(one.score * math.exp(KIND_RATE * max(-3.0, min(3.0, surprise))), 4))),
                    gain=round(one.gain * math.exp(KIND_RATE * surprise), 6),
                    confidence=min(1.0, round(one.confidence + 0.1, 2)),
                )
            )
    return changed


def overflow(tree: WorldTree, *, hopeless: bool = True) -> list[Prune]:
    """The worst open leaves where there are more than the tree may hold, and with `hopeless` those that are so beside a sibling."""
    leaves = sorted((one for one in tree.nodes if one.state == "open" and not tree.children(one.id)), key=lambda one: (one.score, -one.id))
    room = max(0, len(leaves) - (MOST_OPEN - ROOM))
    dropped = [one for one in leaves[room:] if hopeless and one.score < HOPELESS and _has_better(tree, one)]
    return [Prune(node=one.id) for one in (*leaves[:room], *dropped)]


def _has_better(tree: WorldTree, node: Node) -> bool:
    return any(one.state == "open" and one.score > node.score for one in tree.children(node.parent))


def _score(offer: Offer) -> float:
    return round(min(10.0, max(0.0, offer.score)), 4)
