"""What a mask in a graph of torch.fx says: where an index tensor has a certain number, and which of its dimensions the mask's are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import fx

COPIES = frozenset({"detach", "detach_", "alias", "lift_fresh_copy", "clone", "contiguous", "to"})
"""Operators that give what they are given."""


@dataclass(frozen=True)
class Mask:
    """Where an index tensor has a number."""

    chosen: fx.Node
    number: int
    dims: tuple[int, ...]
    """Of the index tensor, in the order in which the mask has them."""


class NoMaskError(Exception):
    """Says why a mask is none of that kind."""


def op_of(node: Any) -> str:
    """Name an ATen operator; nothing for any other node."""
    words = str(getattr(node, "target", "")).split(".")
    return words[1] if len(words) == 3 and words[0] == "aten" else ""


def rank(node: Any) -> int:
    """Count a value's dimensions."""
    return int(node.meta["val"].dim())


class Masks:
    """Reads the masks of one exported program."""

    def __init__(self, constants: Mapping[str, Any]) -> None:
        """Take small tensors by the name of their placeholder."""
        self.constants = constants

    def read(self, node: Any) -> Mask:
        """Read one mask; raises NoMaskError."""
        chosen, dims, number = self._walk(node)
        known = tuple(dim for dim in dims if dim is not None)
        if number is None or len(known) < len(dims) or sorted(known) != list(range(rank(chosen))):
            raise NoMaskError("rows are picked by something else than where an index tensor has a number")
        return Mask(chosen, number, known)

    def number(self, value: Any) -> int | None:
        """Read a whole number: a literal, or the one element of a constant tensor; None for anything else."""
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        name, op = getattr(value, "name", ""), op_of(value)
        if name in self.constants:
            contents = self.constants[name].flatten().tolist()
            return int(contents[0]) if len(contents) == 1 else None
        if op in COPIES or (op == "select" and value.args[1:] == (0, 0)):
            return self.number(value.args[0])
        return None

    def _walk(self, node: Any) -> tuple[Any, list[int | None], int | None]:
        """Go up to the comparison: the index tensor, the dimension of it that each of the mask's is, and the number.

        A dimension that counts experts is -1 as long as none is chosen, one of a single element None.
        """
        op = op_of(node)
        if op == "eq":
            return self._compared(node)
        if op == "one_hot":
            source = node.args[0]
            return source, [*range(rank(source)), -1], None
        step = getattr(self, f"_{op}", None)
        if step is None and op not in COPIES:
            raise NoMaskError("rows are picked by something else than where an index tensor has a number")
        chosen, dims, number = self._walk(node.args[0])
        if step is None:
            return chosen, dims, number
        found = step(node, list(dims))
        return chosen, found[0], number if found[1] is None else found[1]

    def _compared(self, node: Any) -> tuple[Any, list[int | None], int | None]:
        source, other = node.args[:2]
        number = self.number(other)
        if number is None or not hasattr(source, "meta"):
            raise NoMaskError("rows are picked by a comparison with something else than a number")
        return source, list(range(rank(source))), number

    def _permute(self, node: Any, dims: list[int | None]) -> tuple[list[int | None], int | None]:
        return [dims[place] for place in node.args[1]], None

    def _transpose(self, node: Any, dims: list[int | None]) -> tuple[list[int | None], int | None]:
        one, two = (int(place) % len(dims) for place in node.args[1:3])
        dims[one], dims[two] = dims[two], dims[one]
        return dims, None

    def _t(self, node: Any, dims: list[int | None]) -> tuple[list[int | None], int | None]:
        return dims[::-1], None

    def _select(self, node: Any, dims: list[int | None]) -> tuple[list[int | None], int | None]:
        dim, place = int(node.args[1]) % len(dims), node.args[2]
        if dims.pop(dim) != -1 or not isinstance(place, int):
            raise NoMaskError("a part of an index tensor picks rows")
        return dims, place

    def _index(self, node: Any, dims: list[int | None]) -> tuple[list[int | None], int | None]:
        place = node.args[1][0]
        number = self.number(place) if len(node.args[1]) == 1 else None
        if number is None or dims[0] != -1:
            raise NoMaskError("a part of an index tensor picks rows")
        return [*[None] * rank(place), *dims[1:]], number

    def _squeeze(self, node: Any, dims: list[int | None]) -> tuple[list[int | None], int | None]:
        given = node.args[1] if len(node.args) > 1 else list(range(len(dims)))
        wanted = {int(place) % len(dims) for place in ([given] if isinstance(given, int) else given)}
        sizes = node.args[0].meta["val"].shape
        return [dim for place, dim in enumerate(dims) if place not in wanted or sizes[place] != 1], None

    def _unsqueeze(self, node: Any, dims: list[int | None]) -> tuple[list[int | None], int | None]:
        dims.insert(int(node.args[1]) % (len(dims) + 1), None)
        return dims, None
