"""The world model's tree and its validated edits."""

from __future__ import annotations

import pytest

from graphs.search.archive import Offer
from graphs.search.world_edits import beliefs, overflow, proposals
from graphs.search.world_tree import MOST_OPEN, TOP, Adopt, Insert, Prune, Split, Update, WorldTree
from tools.records import Action, ActionKind


def _insert(parent: int = TOP, block: int = 16, **fields: float) -> Insert:
    action = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK": block})
    return Insert(parent=parent, action=action, **{"score": 5.0, "gain": 1.2, "difficulty": 2, **fields})


def _tree(*edits: Insert) -> WorldTree:
    tree = WorldTree()
    for edit in edits or (_insert(block=16), _insert(block=32, score=7.0)):
        tree = tree.edited(edit)
    return tree


def test_the_frontier_is_ordered_by_score_then_difficulty() -> None:
    """Open decisions below a solution come best first, easier ones first among equals, very hard ones only where nothing else is."""
    tree = _tree(
        _insert(block=1, score=5.0, difficulty=3), _insert(block=2, score=5.0, difficulty=1), _insert(block=3, score=9.0, difficulty=5)
    )
    assert [one.id for one in tree.frontier()] == [2, 1]


def test_nothing_is_opened_below_an_open_decision() -> None:
    """A decision without a solution cannot be built on."""
    with pytest.raises(ValueError, match="no solution"):
        _tree().edited(_insert(parent=1))


def test_a_node_has_at_most_three_open_decisions_and_none_twice() -> None:
    """The fourth insert below one node is refused, and so is a decision that is there already."""
    tree = _tree(_insert(block=1), _insert(block=2), _insert(block=3))
    with pytest.raises(ValueError, match="3 open"):
        tree.edited(_insert(block=4))
    with pytest.raises(ValueError, match="already"):
        _tree().edited(_insert(block=16))


def test_a_solution_never_changes() -> None:
    """A closed decision is neither concluded again, nor updated, nor pruned."""
    tree = _tree().concluded(1, "abc", 0.9)
    with pytest.raises(ValueError, match="not open"):
        tree.concluded(1, "other", 2.0)
    with pytest.raises(ValueError, match="closed"):
        tree.edited(Update(node=1, score=1, gain=1, confidence=1))
    with pytest.raises(ValueError, match="closed"):
        tree.edited(Prune(node=1))


def test_a_slower_solution_may_be_built_on() -> None:
    """Paths need not be monotone: below a solution that is slower than its parent decisions can be opened."""
    tree = _tree().concluded(1, "abc", 0.8).edited(_insert(parent=1, block=64))
    assert [one.parent for one in tree.frontier()] == [TOP, 1]


def test_a_failed_decision_leaves_the_frontier() -> None:
    """A cycle without a right candidate fails its decision."""
    assert [one.id for one in _tree().concluded(2, "", 1.0).frontier()] == [1]


def test_a_solution_belongs_to_one_node() -> None:
    """Neither a split nor an adoption can take a solution that a node has."""
    tree = _tree().concluded(1, "abc", 1.1)
    with pytest.raises(ValueError, match="already"):
        tree.edited(Split(node=1, solution="abc", gain=1.0))
    twin = tree.edited(Split(node=1, solution="def", gain=1.05))
    assert twin.solution(twin.last) == "def"
    with pytest.raises(ValueError, match="already"):
        twin.edited(Adopt(solution="def", gain=1.0))


def test_an_unknown_node_is_named() -> None:
    """An edit of a node that is not there says so and changes nothing."""
    tree = _tree()
    assert tree.fault(Prune(node=77)) == "there is no node 77"


def test_pruned_ids_are_not_given_again() -> None:
    """A new decision never has the number of a pruned one."""
    tree = _tree().edited(Prune(node=2)).edited(_insert(block=128))
    assert tree.last == 3


def test_a_measured_gain_moves_beliefs_of_its_kind() -> None:
    """A decision that gained less than expected lowers the open decisions of its kind, and no others."""
    other = Insert(parent=TOP, action=Action(kind=ActionKind.LAUNCH, region="r0"), score=5.0, gain=1.2, difficulty=1)
    tree = _tree().edited(other)
    node = tree.node(1)
    assert node is not None
    edits = beliefs(tree, node, 0.6)
    assert [edit.node for edit in edits] == [2]
    assert edits[0].score < 7.0


def test_siblings_differ_in_kind_or_region_first() -> None:
    """Of several steps of one kind and region the best is opened first; a second one only after the other kinds."""
    tiles = [Offer(action=_insert(block=size).action, score=9.0 - size / 100) for size in (1, 2, 3)]
    warps = Offer(action=Action(kind=ActionKind.LAUNCH, region="r0"), score=2.0)
    root = WorldTree().nodes[0]
    assert [edit.action.kind for edit in proposals(WorldTree(), root, [*tiles, warps], 3)] == ["tiling", "launch", "tiling"]


def test_the_tree_is_kept_small() -> None:
    """Hopeless leaves beside a better sibling are pruned; the open decisions never exceed their most."""
    tree = _tree(_insert(block=1, score=0.1), _insert(block=2, score=6.0))
    assert [edit.node for edit in overflow(tree)] == [1]
    assert len(overflow(_tree(_insert(block=1, score=0.1)))) == 0
    assert MOST_OPEN == 32
