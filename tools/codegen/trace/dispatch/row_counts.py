"""What a reference may ask of how many rows were picked: whether there are any. Whatever else it asks is refused, by name.

Python's `len` has to answer with a number: it says one row of some picks and many of others, so that steps which ask for more differ.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch

MANY = 1 << 16
"""Rows that `len` says of every other pick."""
MOST_REPEATS = 2000
"""Calls of PyTorch at one place of a reference after such an answer, until the next one: more are a loop over rows, not a step."""


class RowCountError(Exception):
    """A reference asks how many rows were picked, not only whether there are any."""


class CountedRows(torch.SymInt):
    """A number of picked rows: it is no fixed one, and tells a reference, but not PyTorch itself, only whether it is zero."""

    def __bool__(self) -> bool:
        """Say that there are rows."""
        return True

    def __hash__(self) -> int:
        """Be told apart as the number is."""
        return super().__hash__()

    def _asked(self, compare: Callable[[Any, Any], bool], other: Any) -> Any:
        if _is_torch(sys._getframe(2)):
            return compare(PLAIN(self.node), other)
        if not isinstance(other, int) or isinstance(other, bool):
            raise RowCountError("it compares the number of rows that were picked with another size")
        # around the number it is compared with the answer changes, if ever
        answers = {compare(rows, other) for rows in (1, max(1, other - 1), max(1, other), max(1, other + 1))}
        if len(answers) > 1:
            raise RowCountError(
                f"it asks whether the number of rows that were picked is {SAID[compare]} {other}, not only if there are any"
            )
        return answers.pop()


PLAIN: Any = torch.SymInt
SAID: dict[Callable[[Any, Any], bool], str] = {
    operator.eq: "just",
    operator.ne: "other than",
    operator.lt: "less than",
    operator.le: "at most",
    operator.gt: "more than",
    operator.ge: "at least",
}
for _compare in SAID:
    setattr(CountedRows, f"__{_compare.__name__}__", lambda self, other, compare=_compare: self._asked(compare, other))


class Answers:
    """Answers of one trace."""

    def __init__(self) -> None:
        """Begin with none."""
        self._picks: dict[int, int] = {}
        """By the id of a tensor of positions, which its mode keeps."""
        self._pick = 0
        self._order: dict[Any, int] = {}
        self._calls: Counter[tuple[CodeType, int]] = Counter()

    def picked(self, *positions: torch.Tensor) -> None:
        """Hear of rows that are picked: all have one size, so that PyTorch knows of one what it worked out for another."""
        self._pick += 1
        self._picks |= dict.fromkeys(map(id, positions), self._pick)

    def length(self, tensor: torch.Tensor) -> int:
        """Say a size to `len`: that of picked rows is one or many, by no pattern that the picks of a step could have."""
        size: Any = tensor.shape[0]
        if known_size(size) is not None:
            return int(size)
        self._calls.clear()
        return self.number(self._picks.get(id(tensor), self._pick))

    def number(self, pick: Any) -> int:
        """Say the number of rows of a pick."""
        place = self._order.setdefault(pick, len(self._order))
        return MANY if place.bit_count() % 2 else 1

    def count(self, pick: Any, place: int) -> int:
        """Say the number of rows of one expert among counts of all: neighbours differ, so that those of one answer are no loop."""
        self._order.setdefault(pick, len(self._order))
        return 1 if place % 2 else MANY

    def sizes(self, found: Any) -> Any:
        """Have sizes of picked rows hear what they are compared with."""
        if isinstance(found, torch.SymInt):
            counted: Any = CountedRows
            return found if known_size(found) is not None else counted(found.node)
        return torch.Size([self.sizes(size) for size in found]) if isinstance(found, torch.Size) else found

    def heard(self, caller: FrameType) -> None:
        """Hear of a call of PyTorch."""
        if self._order and not _is_torch(caller):
            place = caller.f_code, caller.f_lasti
            self._calls[place] += 1
            if self._calls[place] > MOST_REPEATS:
                raise RowCountError("it does something as often as rows were picked")


def _is_torch(caller: FrameType) -> bool:
    """Whether PyTorch's own code runs there."""
    return str(caller.f_globals.get("__name__", "")).partition(".")[0] == "torch"


def known_size(size: Any) -> int | None:
    """Tell a size of a trace without making it a fixed one; None for the number of rows that were picked."""
    if isinstance(size, int):
        return size
    return int(size.node.hint) if size.node.has_hint() else None
