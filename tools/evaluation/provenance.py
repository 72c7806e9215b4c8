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


def provenance(launches: Iterable[Launch], *, blind: bool = False) -> Provenance:
    """Class the recorded launches: only the candidate's own kernels, only a library's, or both; preparing memory does not count.

    `blind` sees no library, for tests of this defence.
    """
    own = library = False
    for launch in launches:
        own = own or launch.kind == "triton"
        library = library or (not blind and launch.kind == "library" and launch.name.split(".")[1] not in _MOVES)
    if own:
        return "mixed" if library else "authored"
    return "library" if library else "unknown"
