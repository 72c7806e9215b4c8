"""The search tree of a run: which candidates are drawn, in what order they are read, and how each is marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Facts = dict[str, Any]
MOST = 400
"""Candidates that are drawn; of a larger run the best, and all that lie above them."""
SIGNS = {"best": "★", "right": "●", "slow": "○", "failed": "✕", "open": "…"}
"""So that no mark is told by its colour alone."""
WORDS = {
    "best": "delivered",
    "right": "right, faster than the best baseline",
    "slow": "right",
    "failed": "failed",
    "open": "not judged yet",
}
STEPS = 5
"""Shades of gain."""


class Branch(NamedTuple):
    """A candidate in the tree."""

    line: Facts
    depth: int
    """0 below the reference."""
    mark: str
    """One of `SIGNS`, for its colour."""
    shade: int
    """From 1, little gain, to `STEPS`, as much as the best of the run; 0 without any."""


def branches(facts: Facts, most: int = MOST) -> list[Branch]:
    """Put candidates in the order in which a tree is read: each followed by what came of it."""
    lines = leading(facts["candidates"], most, facts["delivered"])
    children: dict[str, list[Facts]] = {}
    known = {line["id"] for line in lines}
    for line in lines:
        children.setdefault(line["parent"] if line["parent"] in known else "root", []).append(line)
    top = max((line["speedup"] or 0.0 for line in lines), default=0.0)
    drawn: list[Branch] = []
    # depth first, with a stack of our own: a long chain is no reason to fail
    waiting = [(line, 0) for line in reversed(children.get("root", []))]
    while waiting:
        line, depth = waiting.pop()
        drawn.append(Branch(line, depth, mark_of(line, facts["delivered"]), _shade(line["speedup"] or 0.0, top)))
        waiting += [(child, depth + 1) for child in reversed(children.get(line["id"], []))]
    return drawn


def leading(lines: Sequence[Facts], most: int, delivered: str | None) -> list[Facts]:
    """At most so many, in their order: what was delivered and the best, each with all that lies above it."""
    if len(lines) <= most:
        return list(lines)
    by_name = {line["id"]: line for line in lines}
    kept: set[str] = set()
    for line in sorted(lines, key=lambda line: (line["id"] != delivered, -(line["speedup"] or 0.0))):
        name = line["id"]
        while name in by_name and name not in kept and len(kept) < most:
            kept.add(name)
            name = by_name[name]["parent"]
        if len(kept) == most:
            break
    return [line for line in lines if line["id"] in kept]


def mark_of(line: Facts, delivered: str | None) -> str:
    """Say in a word how a candidate ended."""
    if line["id"] == delivered:
        return "best"
    if line["verdict"] is None:
        return "open"
    if line["verdict"] != "PASS":
        return "failed"
    return "right" if (line["speedup"] or 0.0) > 1.0 else "slow"


def _shade(gain: float, top: float) -> int:
    """How far a gain is on the way from none to the largest."""
    if gain <= 1.0 or top <= 1.0:
        return 0
    return max(1, min(STEPS, 1 + int((gain - 1.0) / (top - 1.0) * STEPS * 0.999)))
