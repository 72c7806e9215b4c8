"""Drop what a kernel does not use: assignments nobody reads, and then parameters nobody names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

ASSIGNMENT = re.compile(r"^\s*([A-Za-z_]\w*) = ")


def prune(lines: Sequence[str]) -> list[str]:
    """Remove assignments whose variable no other line reads, until none is left."""
    kept = list(lines)
    while True:
        dead = [place for place, line in enumerate(kept) if (found := ASSIGNMENT.match(line)) and not _is_read(found[1], place, kept)]
        if not dead:
            return kept
        kept = [line for place, line in enumerate(kept) if place not in dead]


def words(lines: Iterable[str]) -> frozenset[str]:
    """List every name in a text."""
    return frozenset(word for line in lines for word in re.findall(r"[A-Za-z_]\w*", line))


def _is_read(name: str, place: int, lines: Sequence[str]) -> bool:
    """Whether a value is read: after its assignment, or, carried around a loop, before it."""
    pattern = re.compile(rf"\b{name}\b")
    if pattern.search(lines[place].split(" = ", 1)[1]):
        return True
    in_other_loop = False
    for line in lines[place + 1 :]:
        in_other_loop |= line.lstrip().startswith("for ")
        found = ASSIGNMENT.match(line)
        assigns = found is not None and found[1] == name
        if pattern.search(line.split(" = ", 1)[1] if assigns else line):
            return True
        if assigns:
            # assigned again: in another loop this value is dead, in a branch of the same it may not be
            return not in_other_loop
    return any(pattern.search(line) for line in _earlier_in_loop(place, lines))


def _earlier_in_loop(place: int, lines: Sequence[str]) -> Sequence[str]:
    depth = len(lines[place]) - len(lines[place].lstrip())
    for start in range(place - 1, -1, -1):
        line = lines[start]
        if line.lstrip().startswith("for ") and len(line) - len(line.lstrip()) < depth:
            return lines[start + 1 : place]
    return ()
