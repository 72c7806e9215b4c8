"""Whose kernels a candidate runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tools.records import Launch

Provenance = Literal["authored", "mixed", "library", "unknown"]

_MOVES = frozenset(
    [
        "clone",
        "copy_",
        "_to_copy",
        "fill_",
        "zero_",
        "zeros",
        "zeros_like",
        "ones",
        "ones_like",
        "full",
        "full_like",
        "new_zeros",
        "new_full",
        "new_ones",
        "arange",
        "scalar_tensor",
    ]
)
"""Operators that prepare memory and compute nothing: they make no candidate a library's."""


def named(launches: Iterable[Launch]) -> tuple[tuple[str, str], ...]:
    """Name the launches that a dry run recorded: for a candidate that did not get as far as a real call."""
    return tuple((launch.kind, launch.name) for launch in launches)


def provenance(ran: Iterable[tuple[str, str]], *, blind: bool = False) -> Provenance:
    """Class what ran, (kind, name) each: only the candidate's own kernels, only a library's, or both; preparing memory does not count.

    `blind` sees no library, for tests of this defence.
    """
    own = library = False
    for kind, name in ran:
        own = own or kind in ("triton", "cuda")
        library = library or (not blind and kind == "library" and name.split(".")[1 if "." in name else 0] not in _MOVES)
    if own:
        return "mixed" if library else "authored"
    return "library" if library else "unknown"
