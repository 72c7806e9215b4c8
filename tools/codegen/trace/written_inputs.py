"""Arguments and buffers in which a reference leaves new contents: read as values that are stored at the end, or written as it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tools.codegen.trace.memories import storage_of
from tools.codegen.trace.part_writes import TURNED_IN_PLACE, writes

if TYPE_CHECKING:
    from torch import fx

IN_PARTS = ("index_fill_", "put_", "masked_scatter_")
"""Operators that write some elements of their first argument and leave the rest: as a value that would be a copy of all of it."""


def written_whole(nodes: Iterable[fx.Node], given: Mapping[fx.Node, str]) -> frozenset[str]:
    """Name the inputs, of those `given` by their nodes, that are only written as a whole: each write can be read as a value."""
    owners = {storage_of(node): (node, name) for node, name in given.items()}
    whole: set[str] = set()
    parts: set[str] = set()
    for node in nodes:
        if node.op != "call_function" or not writes(str(node.target)):
            continue
        target: fx.Node = node.args[0]  # type: ignore[assignment]
        if (storage := storage_of(target)) in owners:
            place, name = owners[storage]
            (whole if _first(target) is place and not _op(node).startswith((*IN_PARTS, *TURNED_IN_PLACE)) else parts).add(name)
    return frozenset(whole - parts)


def _first(node: fx.Node) -> fx.Node:
    """Give the tensor that a chain of writes in place goes on with."""
    while node.op == "call_function" and writes(str(node.target)) and _op(node) not in TURNED_IN_PLACE:
        node = node.args[0]  # type: ignore[assignment]
    return node


def _op(node: fx.Node) -> str:
    return str(node.target).split(".")[1]
