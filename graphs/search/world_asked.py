"""The planner's edits of the world model: its words made edits of the tree, and the check that each can be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import ValidationError

from agents.planner.world import Check, Decision, Ended, TreeEdit
from graphs.search.wishes import EditWish
from graphs.search.world_tree import Edit, Insert, Prune, Split, Update, WorldTree
from tools.records import Action

FIELDS: dict[str, tuple[type[Insert | Update | Prune], tuple[str, ...]]] = {
    "insert": (Insert, ("score", "gain", "difficulty")),
    "update": (Update, ("score", "gain", "confidence")),
    "prune": (Prune, ()),
}
"""What each edit is made of, beside its node and an insert's action."""


def decisions(tree: WorldTree) -> tuple[Decision, ...]:
    """The tree's nodes as a planner is shown them."""
    return tuple(Decision(**one.model_dump(exclude={"action"}), action=one.action) for one in tree.nodes)


def tree_check(wish: EditWish, action_fault: Callable[[Action], str], *, must_open: bool) -> Check:
    """Validate edits one after the other, each on the tree that the ones before have left.

    `action_fault` says why an action is not possible on the focus; with `must_open` the focus needs an open decision in the end.
    """

    def check(edits: Sequence[TreeEdit]) -> tuple[tuple[TreeEdit, ...], tuple[str, ...]]:
        tree, kept, faults = wish.tree, [], []
        for one in edits:
            edit = made(one, wish.ended)
            fault = edit if isinstance(edit, str) else _focus_fault(one, wish, action_fault) or tree.fault(edit)
            if fault or isinstance(edit, str):
                faults.append(f"{one.edit} {one.node}{f' {one.action}' if one.action else ''}: {fault}")
                continue
            tree = tree.edited(edit)
            kept.append(one)
        if must_open and not any(child.state == "open" for child in tree.children(wish.focus)):
            faults.append(f"node {wish.focus} has no open decision below it: insert at least one")
        return tuple(kept), tuple(faults)

    return check


def made(one: TreeEdit, ended: Ended | None) -> Edit | str:
    """The edit of the tree, or what is missing of it."""
    if one.edit == "split":
        if ended is None or not ended.second or one.node != ended.node:
            return "there is no second kernel to split off"
        return Split(node=one.node, solution=ended.second, gain=ended.second_gain)
    if one.edit == "insert" and one.action is None:
        return "it names no action"
    type_, needed = FIELDS[one.edit]
    fields = one.model_dump(include=set(needed), exclude_none=True)
    if missing := [name for name in needed if name not in fields]:
        return f"its {missing[0]} is missing"
    where = {"parent": one.node, "action": one.action} if one.edit == "insert" else {"node": one.node}
    try:
        return type_.model_validate({**fields, **where})
    except ValidationError as error:
        first = error.errors()[0]
        return f"its {first['loc'][0]} cannot be {first['input']}: {first['msg']}"


def _focus_fault(one: TreeEdit, wish: EditWish, action_fault: Callable[[Action], str]) -> str:
    if one.edit != "insert" or one.action is None:
        return ""
    if one.node != wish.focus:
        return f"decisions are opened below node {wish.focus} only"
    return action_fault(one.action)
