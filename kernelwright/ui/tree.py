"""The search tree of a run as lines to draw: each candidate below its parent, with how deep it lies."""

from __future__ import annotations

from typing import Any, NamedTuple

Facts = dict[str, Any]
MOST = 400
"""Candidates that are drawn; of a larger run the best, and all that lie above them."""


class Branch(NamedTuple):
    """A candidate in the tree."""

    line: Facts
    depth: int
    """0 below the reference."""
    mark: str
    """`best`, `right`, `slow` (right, and not faster than the best baseline), `failed` or `open`, for its colour."""


def branches(facts: Facts) -> list[Branch]:
    """Put candidates in the order in which a tree is read: each followed by what came of it."""
    lines = _shown(facts["candidates"])
    children: dict[str, list[Facts]] = {}
    known = {line["id"] for line in lines}
    for line in lines:
        children.setdefault(line["parent"] if line["parent"] in known else "root", []).append(line)
    drawn: list[Branch] = []
    # depth first, with a stack of our own: a long chain is no reason to fail
    waiting = [(line, 0) for line in reversed(children.get("root", []))]
    while waiting:
        line, depth = waiting.pop()
        drawn.append(Branch(line, depth, _mark(line, facts["delivered"])))
        waiting += [(child, depth + 1) for child in reversed(children.get(line["id"], []))]
    return drawn


def _shown(lines: list[Facts]) -> list[Facts]:
    if len(lines) <= MOST:
        return lines
    by_name = {line["id"]: line for line in lines}
    kept: set[str] = set()
    for line in sorted(lines, key=lambda line: -(line["speedup"] or 0.0)):
        name = line["id"]
        while name in by_name and name not in kept and len(kept) < MOST:
            kept.add(name)
            name = by_name[name]["parent"]
    return [line for line in lines if line["id"] in kept]


def _mark(line: Facts, delivered: str | None) -> str:
    if line["id"] == delivered:
        return "best"
    if line["verdict"] is None:
        return "open"
    if line["verdict"] != "PASS":
        return "failed"
    return "right" if (line["speedup"] or 0.0) > 1.0 else "slow"
