"""How Triton lays the values of a tile over the lanes and warps of a program: how many elements of each a thread has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tools.codegen.templates.shared.work import WARP

ROWS, COLS = -2, -1
"""Dimensions of a tile: rows, columns, and walked axes by their numbers."""


class Spread(NamedTuple):
    """A value over the threads of a program, by dimension."""

    held: Mapping[int, int]
    """Elements of a thread."""
    lanes: Mapping[int, int]
    """Lanes of a warp that lie along it."""


def spread(extents: Sequence[tuple[int, int]], threads: int, wide: int) -> Spread:
    """Lay a value over lanes and warps as Triton does: dimensions and their extents, the fastest first, of which a lane takes `wide`.

    Lanes and warps that are left have copies.
    """
    held, along = {}, {}
    lanes, warps = WARP, threads // WARP
    for number, (dim, extent) in enumerate(extents):
        own = min(wide, extent) if number == 0 else 1
        wanted = max(1, extent // own)
        along[dim] = min(wanted, lanes)
        beside = min(max(1, wanted // along[dim]), warps)
        lanes, warps = lanes // along[dim], warps // beside
        held[dim] = max(1, extent // (along[dim] * beside))
    return Spread(held, along)


class Side(NamedTuple):
    """An access, and the dimension along which its elements lie side by side."""

    dims: frozenset[int]
    """Dimensions over which it varies."""
    dim: int | None
    wide: int
    """Elements that a lane takes at once, at most."""
    item: int
    is_stored: bool = False


class Lanes:
    """The values of one tile.

    An access of at least as many elements as there are threads lies as memory wants it, its other dimensions in their order; where nothing
    lies side by side, rows come first. A value lies as the largest one with its dimensions does, and that as its heaviest access, or as the
    last tensor that is read for it where none has all of its dimensions: sums over lanes are the same in all of them, so that what is made
    of the sums is made by each. Formulas of 32 columns with 16 walked elements each are made 16 times so. All of this is as Triton 3.6 lays
    them.
    """

    def __init__(self, extents: Mapping[int, int], kinds: Iterable[frozenset[int]], sides: Sequence[Side], threads: int) -> None:
        """Take a tile's extents by dimension, the dimensions of its values, its accesses, and the threads of a program."""
        self.extents, self.threads = extents, threads
        self.kinds = frozenset(kinds)
        self._sizes: dict[frozenset[int], int] = {}
        self._anchors = [side for side in sides if self._size(side.dims) >= threads]
        self._weighed: dict[frozenset[int], dict[int | None, int]] = {}
        for side in self._anchors:
            weights = self._weighed.setdefault(side.dims, {})
            weights[side.dim] = weights.get(side.dim, 0) + side.item
        self._known: dict[frozenset[int], Spread] = {}
        self._held: dict[frozenset[int], int] = {}
        self._own: dict[tuple[frozenset[int], int | None], Spread] = {}

    def of(self, dims: frozenset[int]) -> Spread:
        """Say how values of some dimensions lie."""
        if dims not in self._known:
            whole = max(
                (kind for kind in self.kinds if dims <= kind), key=lambda kind: (self._size(kind), tuple(sorted(kind))), default=dims
            )
            self._known[dims] = self._laid(whole)
        return self._known[dims]

    def of_access(self, side: Side) -> Spread:
        """Say how an access lies."""
        return self._placed(side.dims, side.dim) if self._size(side.dims) >= self.threads else self.of(side.dims)

    def held(self, dims: frozenset[int]) -> int:
        """Count the elements that a thread makes of a value of some dimensions."""
        if dims not in self._held:
            found = self.of(dims).held
            self._held[dims] = math.prod([found[dim] for dim in dims])
        return self._held[dims]

    @property
    def crosses(self) -> bool:
        """Whether values of two dimensions share a walked one of them, and no value has all three.

        What is made of both is laid out as one of them, and the other one is held by each thread along the dimension that it has not.
        """
        planes = [kind for kind in self.kinds if len(kind) > 1 and self._size(kind) >= self.threads]
        pairs = (
            (one, other)
            for one in planes
            for other in planes
            if max(one & other, default=COLS) >= 0 and not one <= other and not other <= one
        )
        return any(not any(one | other <= kind for kind in self.kinds) for one, other in pairs)

    def _size(self, dims: frozenset[int]) -> int:
        if dims not in self._sizes:
            self._sizes[dims] = math.prod([self.extents[dim] for dim in dims])
        return self._sizes[dims]

    def turns(self, side: Side) -> bool:
        """Whether an access is laid otherwise than the values it is among: its elements go through shared memory."""
        if self._size(side.dims) < self.threads or len(side.dims) < 2:
            return False
        weights = self._weights(side.dims)
        heaviest = max(weights, key=lambda dim: (weights[dim], dim is not None), default=side.dim)
        return _first(side.dims, side.dim) != _first(side.dims, heaviest)

    def _weights(self, kind: frozenset[int]) -> dict[int | None, int]:
        """Bytes of the accesses of some dimensions by what they lie along."""
        return self._weighed.get(kind, {})

    def _laid(self, kind: frozenset[int]) -> Spread:
        weights = self._weights(kind)
        if weights:
            return self._placed(kind, max(weights, key=lambda dim: (weights[dim], dim is not None)))
        if met := [side for side in self._anchors if side.dims < kind and not side.is_stored]:
            # what is made of tensors that meet lies as the last of them, and each thread has all of what that one has not
            last = self._placed(met[-1].dims, met[-1].dim)
            others = kind - met[-1].dims
            return Spread({**last.held, **{dim: self.extents[dim] for dim in others}}, {**last.lanes, **dict.fromkeys(others, 1)})
        # what is not read is laid with its last dimension first
        return spread([(dim, self.extents[dim]) for dim in reversed(_in_order(kind))], self.threads, 1)

    def _placed(self, dims: frozenset[int], first: int | None) -> Spread:
        if (dims, first) not in self._own:
            wide = max((side.wide for side in self._anchors if side.dims == dims and side.dim == first), default=1)
            order = sorted(_in_order(dims), key=lambda dim: dim != first)
            wide = min(wide, self._size(dims) // self.threads) if first is not None else 1
            self._own[dims, first] = spread([(dim, self.extents[dim]) for dim in order], self.threads, max(1, wide))
        return self._own[dims, first]


def _first(dims: frozenset[int], dim: int | None) -> int:
    """Name the dimension that is the fastest: of what lies side by side nowhere, the first."""
    return min(dims) if dim is None else dim


def _in_order(dims: frozenset[int]) -> list[int]:
    """List dimensions as a tile has them: rows, columns, walked axes."""
    return sorted(dims)
