"""What an answer of the coder amounts to: a whole file, the marked parts of one, or edits of one; and the idea it states."""

from __future__ import annotations

import re
from typing import NamedTuple

from agents.coder.anchors import Anchor, outside_change, read_parts, replaced, without_marks
from agents.coder.edits import edited, read_edits
from agents.coder.source import python_blocks, read_source
from agents.models import Answer
from agents.models.reading import without_thoughts

IDEA_LIMIT = 300
"""Characters of an idea that are kept."""
_IDEA = re.compile(r"^\W*idea\W*:\s*\**\s*(\S.*)$", re.IGNORECASE | re.MULTILINE)


class Ground(NamedTuple):
    """What an answer may refer to."""

    parent: str = ""
    """Source whose marked parts may change; empty where there is none."""
    anchors: tuple[Anchor, ...] = ()
    """These parts; none: everything may change."""
    edited: str = ""
    """Source that edits are made in; empty where a whole file is wanted."""


def source_of(answer: Answer, ground: Ground) -> tuple[str, str]:
    """Return the whole source that an answer amounts to and an empty complaint, or what keeps it from being used."""
    if answer.finish == "refusal":
        return "", f"the model declined: {answer.text[:300]}"
    source, complaint = _whole(answer.text, ground)
    if complaint and answer.finish == "length":
        complaint = f"The answer was cut off at the output limit. {complaint}"
    if complaint or not ground.anchors:
        return source, complaint
    source = without_marks(source)
    complaint = outside_change(ground.parent, ground.anchors, source)
    return ("", complaint) if complaint else (source, "")


def _whole(text: str, ground: Ground) -> tuple[str, str]:
    """A whole file goes before parts of one, and these before edits."""
    source, complaint = read_source(text)
    if not complaint:
        return source, ""
    if ground.anchors and (parts := read_parts("\n".join(python_blocks(text)))):
        return _checked(*replaced(ground.parent, ground.anchors, parts))
    if ground.edited and (edits := read_edits(without_thoughts(text))):
        return _checked(*edited(ground.edited, edits))
    return "", complaint


def _checked(source: str, wrong: str) -> tuple[str, str]:
    return ("", wrong) if wrong else read_source(f"~~~~~python\n{source}~~~~~\n")


def idea_of(reply: str) -> str:
    """The idea that a reply states in a line `Idea: …`, else its first words before the code; empty where it has none."""
    prose = re.split(r"^[ \t]*(?:`{3}|~{3}|<{5} ?SEARCH)", without_thoughts(reply), maxsplit=1, flags=re.MULTILINE)[0]
    stated = _IDEA.search(prose)
    words = " ".join((stated.group(1) if stated else prose).split())
    return words if len(words) <= IDEA_LIMIT else f"{words[: IDEA_LIMIT - 1]}…"
