"""Edits: an answer that names what to change of a source, text by text, instead of writing all of it again."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"^<{5,9} ?SEARCH[^\n]*\n(.*?)^={5,9}[ \t]*\n(.*?)^>{5,9} ?REPLACE[^\n]*$", re.DOTALL | re.MULTILINE)


def read_edits(reply: str) -> tuple[tuple[str, str], ...]:
    """Find the pairs of what is searched and what replaces it, in order."""
    return tuple((found.group(1), found.group(2)) for found in _BLOCK.finditer(reply))


def edited(source: str, edits: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Make edits one after the other: the new source, or an empty one and what is wrong.

    What is searched must be there exactly once: whole lines, whose ends may have other spaces, or a part of one line.
    """
    lines = source.splitlines()
    for number, (search, replace) in enumerate(edits, 1):
        wanted, new = [line.rstrip() for line in search.splitlines()], replace.splitlines()
        places = [at for at in range(len(lines) - len(wanted) + 1) if [line.rstrip() for line in lines[at : at + len(wanted)]] == wanted]
        if not places and len(wanted) == len(new) == 1 and wanted[0]:
            places = [at for at, line in enumerate(lines) for _ in range(line.count(wanted[0]))]
            new = [lines[places[0]].replace(wanted[0], new[0])] if places else new
        if not any(wanted) or len(places) != 1:
            found = "is empty" if not any(wanted) else "is not in the source" if not places else f"is there {len(places)} times"
            first = next(filter(None, wanted), "").strip()[:120]
            return "", f"What edit {number} searches {found}: `{first}`. Repeat whole lines exactly, with enough around them."
        lines[places[0] : places[0] + len(wanted)] = new
    return "\n".join(lines) + "\n", ""
