"""Arguments and buffers in which a reference leaves new contents: read as values that are stored at the end, or written as it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tools.codegen.trace.memories import storage_of
from tools.codegen.trace.part_writes import TURNED_IN_PLACE, writes

if TYPE_CHECKING:
    from torch import fx

IN_PARTS = ("index_fill_", "put_", "masked_scatter_")
"""Operators that write some elements of their first argument and leave the rest: as a value that would be a copy of all of it."""


def written_whole(nodes: Iterable[fx.Node], given: Mapping[fx.Node, str]) -> frozenset[str]:
    """Name the inputs, of those `given` by their nodes, whose writes are read as values.

    Those are written as a whole, at least once: of one that is only written in part, such as a cache, a value would be a copy.
    """
    owners = {storage_of(node): (node, name) for node, name in given.items()}
    whole: set[str] = set()
    in_parts: set[str] = set()
    for node in nodes:
        if node.op != "call_function" or not writes(str(node.target)):
            continue
        target: fx.Node = node.args[0]  # type: ignore[assignment]
        if (storage := storage_of(target)) in owners:
            place, name = owners[storage]
            if _op(node).startswith((*IN_PARTS, *TURNED_IN_PLACE)):
                in_parts.add(name)
            elif _first(target) is place:
                whole.add(name)
    return frozenset(whole - in_parts)


def _first(node: fx.Node) -> fx.Node:
    """Give the tensor that a chain of writes in place, and of views of all elements in their order, goes on with."""
    while node.op == "call_function" and (_writes_on(node) or _is_regrouped(node)):
        node = node.args[0]  # type: ignore[assignment]
    return node


def _writes_on(node: fx.Node) -> bool:
    return writes(str(node.target)) and _op(node) not in TURNED_IN_PLACE


def _is_regrouped(node: fx.Node) -> bool:
    source: Any = node.args[0]
    if _op(node) not in ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze") or not hasattr(source, "meta"):
        return False
    made, given = node.meta["val"], source.meta["val"]
    return bool(given.is_contiguous() and made.numel() == given.numel() and made.dtype == given.dtype)


def _op(node: fx.Node) -> str:
    return str(node.target).split(".")[1]
