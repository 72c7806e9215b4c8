"""Whole numbers, such as indices of the least, that a reference's own rounding decides: any that it has given for an element is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    import torch

LEAST = frozenset({"argmin", "argmax", "min", "max"})
"""Operators that name the least or the largest; those that put elements in order have looks of their own (`free_order`)."""

MOST_STACKED = 64
"""Choices that one output may hold side by side."""


class Part(NamedTuple):
    """A choice, by number, and where an output holds it: the whole of it, or one place along a dimension."""

    number: int
    dim: int | None = None
    at: int = 0

    def of(self, value: torch.Tensor) -> torch.Tensor:
        """Take it out of an output."""
        return value if self.dim is None else value.select(self.dim, self.at)


class Choices:
    """What runs of a reference gave for each element of an output of whole numbers."""

    def __init__(self, own: torch.Tensor) -> None:
        """Begin with what it gives as it is."""
        self._own = own
        self._others: list[torch.Tensor] = []

    def met(self, other: torch.Tensor) -> None:
        """Take another run's output in."""
        other = other.to(self._own.device)
        if bool((other != self._own).any()):
            self._others.append(other)

    def holds(self, value: torch.Tensor) -> torch.Tensor:
        """Mark elements for which another run gave this very number, and the reference as it is another one."""
        import torch

        found = torch.zeros_like(value, dtype=torch.bool)
        for other in self._others:
            found |= (value == other) & (other != self._own)
        return found


class Choosing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Has a reference choose what a candidate chose, so that what follows is judged by that choice."""

    # `torch.cond` and its like run as they are, without a look inside
    supports_higher_order_operators = True

    def __init__(self, chosen: dict[int, torch.Tensor] | None = None, count: int = 1) -> None:
        """Replace indices of the least or the largest by number, of `count` in each run; without, only keep them."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._chosen, self._count = chosen, count
        self.met: list[torch.Tensor] = []
        """The indices, where nothing is replaced."""
        self._number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; give what was chosen in place of its result."""
        import torch

        found = func(*args, **(kwargs or {}))
        if not hasattr(func, "overloadpacket") or func.overloadpacket.__name__ not in LEAST:
            return found
        index = found if isinstance(found, torch.Tensor) else found[-1]
        if index.is_floating_point():
            return found
        number, self._number = self._number % self._count, self._number + 1
        if self._chosen is None:
            self.met.append(index)
        chosen = (self._chosen or {}).get(number)
        if chosen is None or chosen.numel() != index.numel():
            return found
        chosen = chosen.to(index).reshape(index.shape)
        return chosen if isinstance(found, torch.Tensor) else type(found)((*found[:-1], chosen))


def made_by(outputs: Sequence[torch.Tensor], met: Sequence[torch.Tensor]) -> dict[int, tuple[Part, ...]]:
    """Say by place of an output which choice it is, or which ones it stacks: the first of the same whole numbers.

    What follows from a choice is none.
    """
    import torch

    found = {}
    for place, output in enumerate(outputs):
        if not output.is_floating_point() and output.dtype != torch.bool and (parts := _parts(output.long(), met)):
            found[place] = parts
    return found


def _parts(output: torch.Tensor, met: Sequence[torch.Tensor]) -> tuple[Part, ...]:
    """Name the choice that an output is, or those that it stacks along a dimension; none where a place along it holds none."""
    whole = _first_alike(output, met)
    if whole is not None:
        return (Part(whole),)
    for dim, size in enumerate(output.shape):
        if 1 < size <= MOST_STACKED:
            numbers = [_first_alike(output.select(dim, at), met) for at in range(size)]
            if None not in numbers:
                return tuple(Part(number, dim, at) for at, number in enumerate(numbers) if number is not None)
    return ()


def _first_alike(value: torch.Tensor, met: Sequence[torch.Tensor]) -> int | None:
    import torch

    flat = value.flatten()
    return next((number for number, one in enumerate(met) if one.numel() and torch.equal(one.flatten(), flat)), None)


def is_masked(output: torch.Tensor, met: Sequence[torch.Tensor]) -> bool:
    """Whether an output is a choice that has one other number in place of some of its elements."""
    flat = output.flatten().long()
    apart = (flat[value.flatten().to(flat) != flat] for value in met if value.numel() == flat.numel())
    return any(0 < len(other) < len(flat) and bool((other == other[0]).all()) for other in apart)
