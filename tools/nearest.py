"""The known name that a mistyped one is most like."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.6


def nearest(word: str, known: Iterable[str]) -> str:
    """Say `Did you mean 'h100'? ` where one of `known` is much like `word`, else nothing: the beginning of a mend."""
    found = get_close_matches(word, list(known), n=1, cutoff=_ALIKE)
    return f"Did you mean {found[0]!r}? " if found else ""
