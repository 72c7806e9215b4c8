"""The names of the input distributions, and which may be tried on a problem; `trusted.distributions` makes them."""

from __future__ import annotations

AS_MADE = "as made"
"""What the problem's own input maker gives."""

NAMES = (
    "low bits", "offset", "constant rows", "odd integers", "times 64", "times 0.01", "times 2^20", "times 2^-20", "heavy tail", "negated",
    "small integers", "sparse", "one-hot", "block diagonal", "sorted rows", "all equal", "denormals", "signed zeros",
)  # fmt: skip
"""The battery; what the reference raises on, or answers with NaN or infinity, is left out, and a note says so."""

NON_FINITE = "NaN and infinities"
"""Tried only where the policy asks for it."""

HARD = ("low bits", "offset", "constant rows", "odd integers")
"""Always tried: they tell a shorter format and a careless sum from an exact one at any size, however the problem makes its inputs."""

TIES = (
    "constant rows", "odd integers", "small integers", "sparse", "one-hot", "block diagonal", "all equal", "denormals", "signed zeros",
)  # fmt: skip
"""Distributions that make equal elements: the index of a maximum is then a matter of taste, so integer outputs skip them."""

KEEPS_RANGE = ("constant rows", "sorted rows", "all equal")
"""Distributions whose elements are elements of the input: alone allowed where others make a device fault and not an exception."""

RANGE_CHECKED = ("aten.binary_cross_entropy", "aten.multinomial", "aten.bernoulli")
"""Operators that end a CUDA context where an element is out of their range."""


def allowed(operators: tuple[str, ...], *, integers_out: bool) -> tuple[str, ...]:
    """List what may be tried on a reference of these operators, `integers_out` where it answers with integers."""
    names = KEEPS_RANGE if any(name.startswith(RANGE_CHECKED) for name in operators) else NAMES
    return tuple(name for name in names if not (integers_out and name in TIES))
