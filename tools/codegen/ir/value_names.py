"""Names of values in emitted code: those that a user chose stay out of the way of what templates call their own variables."""

from __future__ import annotations

import re

_AXES = r"(rows|cols|outer|inner|elements|steps|plane|k\d*|held_\d+|part_\d+|in_[dhw])"
_OWN = re.compile(
    "|".join(
        (
            r"[A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z]{4,}",
            r"\w+_(ptr|parts|desc|exponents|tiles|whole|sorted)",
            r"stride_\w+",
            r"(given|scalar|acc|left|right|matrix|held)_\d+",
            rf"(n|block|within|log)_{_AXES}(_\d+)?",
            r"(rows?|cols|offs|outer|steps?|elements|batch|plane|at|in)_(above_)?\d+",
            r"(off|pid|tiles)_[a-z]\d*",
        )
    )
)
"""Constants, pointers and buffers, strides, numbers, sizes and masks of axes, parts of positions, places of programs."""


def is_own(name: str) -> bool:
    """Whether templates make names of this shape: of axes, tensors and numbers, so that no list has them all."""
    return _OWN.fullmatch(name) is not None


def spared(name: str) -> str:
    """Name a value as it is called, or so that it looks like no variable of a template's."""
    return f"{name}_value" if is_own(name) else name
