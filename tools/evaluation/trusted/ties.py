"""Notices whether a reference puts equal elements in order, and has it take other orders of them: PyTorch leaves open which comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    import torch

NEAR = 8 * 2.0**-24
"""Relative difference of neighbours below which float32's rounding decides which of them comes first."""
ORDERING = frozenset({"topk", "sort", "argsort"})
"""Operators that put elements in order."""
LARGEST = 1 << 26
"""Elements that are put in another order, at most: their keys and places take some gigabytes."""


class Ordering(NamedTuple):
    """One call of an operator that puts elements in order, and does not say which of equal ones comes first."""

    x: torch.Tensor
    dim: int
    largest: bool
    """Whether the largest come first."""
    picked: int
    """How many, from the first on."""
    only_indices: bool
    apart: torch.Tensor | None = None
    """By row, with one element along `dim`: by less, the reference's own rounding decides which of two elements comes first."""

    @classmethod
    def of(cls, func: Any, args: Any, kwargs: Any) -> Self | None:
        """Read a call of any operator; None for one that is none of these."""
        if not hasattr(func, "overloadpacket"):
            # a loop or a condition of its own operators: what it holds is not seen
            return None
        name = func.overloadpacket.__name__
        given = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | (kwargs or {})
        is_topk = name == "topk"
        if name not in ORDERING or given.get("stable"):
            return None
        x: torch.Tensor = given["self"].detach()
        if not x.dim() or not x.numel():
            return None
        dim = given.get("dim", -1) % x.dim()
        largest = given.get("largest", True) if is_topk else given.get("descending", False)
        return cls(x, dim, largest, given["k"] if is_topk else x.shape[dim], name == "argsort")

    @property
    def length(self) -> int:
        """How many elements are put in order at a time."""
        return self.x.shape[self.dim]

    def along(self, values: torch.Tensor) -> torch.Tensor:
        """Lay one value a place along the ordered dimension, the same in every row: [values] to the shape of `x` but for that dimension."""
        shape = [len(values) if at == self.dim else size for at, size in enumerate(self.x.shape)]
        return values.view([-1 if at == self.dim else 1 for at in range(len(shape))]).expand(shape)

    def has_ties(self, *, inexact: bool = False) -> bool:
        """Whether two neighbours in order are equal, of those that are picked and the first that is not; or `inexact`, only nearly so."""
        is_part = self.picked < self.length
        values = self.x.topk(self.picked + 1, self.dim, self.largest).values if is_part else self.x.sort(self.dim).values
        one, other = values.narrow(self.dim, 0, values.shape[self.dim] - 1), values.narrow(self.dim, 1, values.shape[self.dim] - 1)
        near = _near(one, other) if self.apart is None else _near(one, other) | ((one - other).abs() <= self.apart)
        return bool((near & (one != other) if inexact else near).any())

    def put(self, ranks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Give values and indices with equal elements by their `ranks`, none of which is beyond the length.

        Where the reference's own rounding decides, a row whose ranks are an order within that stands by its ranks alone.
        """
        import torch

        values, order = self.x.sort(dim=self.dim, descending=self.largest, stable=True)
        keys = self._groups(values) * (self.length + 1) + ranks.gather(self.dim, order)
        indices = order.gather(self.dim, keys.argsort(dim=self.dim, stable=True)).narrow(self.dim, 0, self.picked)
        if self.apart is not None:
            ranked = ranks.argsort(dim=self.dim, stable=True).narrow(self.dim, 0, self.picked)
            indices = torch.where(self._is_order(ranked, self.apart), ranked, indices)
        return self.x.gather(self.dim, indices), indices

    def _is_order(self, indices: torch.Tensor, apart: torch.Tensor) -> torch.Tensor:
        """By row: whether no element comes after another that it exceeds by more than `apart`; those that are not picked come last."""
        import torch

        x = self.x.double() if self.largest else -self.x.double()
        chosen = x.gather(self.dim, indices)
        rest = x.scatter(self.dim, indices, -float("inf")).amax(self.dim, keepdim=True)
        following = torch.cat([chosen.narrow(self.dim, 1, self.picked - 1), rest], self.dim)
        most = following.flip(self.dim).cummax(self.dim).values.flip(self.dim)
        return (chosen >= most - apart).all(self.dim, keepdim=True)

    def _groups(self, values: torch.Tensor) -> torch.Tensor:
        """Number the groups of elements in order that cannot be told apart.

        Many neighbours, each near the next, may come far: where they do, only those are a group that are equal.
        """
        import torch

        one, other = values.narrow(self.dim, 0, self.length - 1), values.narrow(self.dim, 1, self.length - 1)
        begins = torch.ones_like(values.narrow(self.dim, 0, 1), dtype=torch.bool)
        starts = torch.cat([begins, ~_near(one, other)], self.dim)
        groups = starts.cumsum(self.dim) - 1
        places = self.along(torch.arange(self.length, device=values.device))
        first = values.gather(self.dim, torch.where(starts, places, 0).cummax(self.dim).values)
        far = torch.zeros_like(groups).scatter_reduce_(self.dim, groups, (~_near(first, values)).long(), "amax").gather(self.dim, groups)
        apart = torch.cat([begins, one != other], self.dim)
        return torch.where(far.bool(), apart, starts).cumsum(self.dim) - 1


def _near(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Mark elements of which float32's rounding decides which is larger."""
    if not one.is_floating_point():
        return one == other
    # infinities of one sign are equal, and their difference is not a number
    return (one == other) | ((one - other).abs() <= NEAR * one.abs())


class Ties(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches selections and sorts that are not stable; `argmax` and its like say which element they name."""

    # `torch.cond` and its like run as they are, without a look inside
    supports_higher_order_operators = True

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[Ordering, torch.Tensor]] = []
        """What has ties, with the indices that came of it."""

    @property
    def met(self) -> bool:
        """Whether anything that was put in order has ties."""
        return bool(self.found)

    @property
    def inexact(self) -> bool:
        """Whether some of them are not equal to the last bit: another way of computing may tell them apart, or turn them round."""
        return any(ordering.has_ties(inexact=True) for ordering, _ in self.found)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; look at what it puts in order."""
        found = func(*args, **(kwargs or {}))
        if (ordering := Ordering.of(func, args, kwargs)) is not None and ordering.has_ties():
            self.found.append((ordering, found if ordering.only_indices else found[1]))
        return found


class Reordered(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Puts equal elements in another order wherever a reference leaves that open."""

    # `torch.cond` and its like run as they are, without a look inside
    supports_higher_order_operators = True

    def __init__(
        self, ranks: Callable[[int, Ordering, torch.Tensor], torch.Tensor | None], apart: Sequence[torch.Tensor | None] = ()
    ) -> None:
        """Ask `ranks` of every ordering, by its number and its indices, for the rank of each element among equal ones; None leaves it.

        `apart`: what the reference's own rounding decides, by ordering; a run meets the same ones as the run before.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._ranks, self._apart = ranks, apart
        self._number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; put what it has ordered into the other order."""
        found = func(*args, **(kwargs or {}))
        ordering = Ordering.of(func, args, kwargs)
        if ordering is None or ordering.x.numel() > LARGEST:
            return found
        number, self._number = self._number, self._number + 1
        ordering = ordering._replace(apart=self._apart[number % len(self._apart)]) if self._apart else ordering
        ranks = self._ranks(number, ordering, found if ordering.only_indices else found[1])
        if ranks is None:
            return found
        values, indices = ordering.put(ranks)
        return indices if ordering.only_indices else type(found)((values, indices))
