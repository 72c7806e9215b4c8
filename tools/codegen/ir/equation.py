"""Equations of einsum in one spelling: an arrow, no spaces, and a letter for every dimension."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

ELLIPSIS = "..."


def spelled_out(equation: str, ranks: Sequence[int]) -> tuple[tuple[str, ...], str] | None:
    """Name every dimension of the operands and of the result, as `torch.einsum` reads an equation; None where the ranks do not fit.

    What `...` stands for gets letters of its own, the same for dimensions that lie equally far from its end. Without an arrow the result
    has those first, and then what stands once, capitals before small letters.
    """
    left, arrow, out = equation.replace(" ", "").partition("->")
    words = left.split(",")
    if len(words) != len(ranks) or any(word.count(ELLIPSIS) > 1 for word in (*words, out)):
        return None
    hidden = [rank - len(word.replace(ELLIPSIS, "")) for word, rank in zip(words, ranks, strict=True)]
    if any(count < 0 or (count > 0 and ELLIPSIS not in word) for word, count in zip(words, hidden, strict=True)):
        return None
    most = max(hidden)
    own = "".join(letter for letter in ascii_letters if letter not in equation)[:most]
    if len(own) < most:
        return None
    if not arrow:
        named = left.replace(ELLIPSIS, "").replace(",", "")
        out = ELLIPSIS + "".join(sorted(letter for letter in named if named.count(letter) == 1))
    spelled = tuple(word.replace(ELLIPSIS, own[most - count :]) for word, count in zip(words, hidden, strict=True))
    out = out.replace(ELLIPSIS, own)
    plain = all((word.isalpha() and word.isascii()) or not word for word in (*spelled, out))
    return (spelled, out) if plain and len(set(out)) == len(out) and set(out) <= set("".join(spelled)) else None
