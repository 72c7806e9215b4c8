"""Atoms: the indivisible dimensions of a region.

A dimension of a tensor is a sequence of atoms (none where its size is one). Two operands that meet in an operator share
atoms; a reshape splits and regroups them; a permutation reorders them. Once a region is lowered, every tensor it reads or
writes is addressed through the same atoms, whatever views lay between.
"""

from __future__ import annotations

from collections.abc import Iterable

from tools.codegen.ir.sizes import Sizes, is_one

Dims = tuple[tuple[int, ...], ...]
"""Atoms of each dimension of a value."""


class ShapeMismatchError(ValueError):
    """Two shapes cannot be related in a way that holds at every size."""


class Atoms:
    """Makes, splits and unites atoms."""

    def __init__(self, traces: int) -> None:
        """Start empty; every size has one entry a trace."""
        self.traces = traces
        self._sizes: list[Sizes] = []
        self._same: dict[int, int] = {}
        self._parts: dict[int, tuple[int, int]] = {}
        self._leaves: dict[int, tuple[int, ...]] = {}
        """What atoms are now, as far as that was asked since one was last split or united: most are asked for a hundred times."""

    @property
    def relations(self) -> tuple[object, ...]:
        """All that atoms are, for who compares those of two regions."""
        return self.traces, self._sizes, self._same, self._parts

    def new(self, sizes: Sizes) -> int:
        """Make an atom."""
        self._sizes.append(sizes)
        return len(self._sizes) - 1

    def size(self, atom: int) -> Sizes:
        """Size of an atom in every trace."""
        return self._sizes[self._root(atom)]

    def dims(self, shape: Iterable[Sizes]) -> Dims:
        """Give a tensor read from memory an atom for each dimension."""
        return tuple(() if is_one(sizes) else (self.new(sizes),) for sizes in shape)

    def leaves(self, atoms: Iterable[int]) -> tuple[int, ...]:
        """Replace split and united atoms by what they are now."""
        result: list[int] = []
        known = self._leaves
        for atom in atoms:
            found = known.get(atom)
            if found is None:
                root = self._root(atom)
                parts = self._parts.get(root)
                found = known[atom] = self.leaves(parts) if parts else (root,)
            result += found
        return tuple(result)

    def resolve(self, dims: Dims) -> Dims:
        """Replace the atoms of every dimension by what they are now."""
        return tuple(self.leaves(dim) for dim in dims)

    def unify(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        """Make two dimensions of equal size the same, splitting the coarser of the two."""
        ones, twos = list(self.leaves(left)), list(self.leaves(right))
        while ones and twos:
            one, two = ones.pop(0), twos.pop(0)
            if one == two:
                continue
            sizes_one, sizes_two = self.size(one), self.size(two)
            if sizes_one == sizes_two:
                self._unite(one, two)
            elif _divides(sizes_two, sizes_one):
                head, tail = self._split(one, sizes_two)
                self._unite(head, two)
                ones = [*self.leaves((tail,)), *ones]
            elif _divides(sizes_one, sizes_two):
                head, tail = self._split(two, sizes_one)
                self._unite(one, head)
                twos = [*self.leaves((tail,)), *twos]
            else:
                raise ShapeMismatchError(f"sizes {sizes_one[0]} and {sizes_two[0]} have no common split")
        if ones or twos:
            raise ShapeMismatchError("dimensions differ in size")

    def broadcast(self, left: Dims, right: Dims) -> Dims:
        """Align two shapes at their last dimensions, as torch does; a dimension without atoms stretches."""
        rank = max(len(left), len(right))
        ones = ((),) * (rank - len(left)) + left
        twos = ((),) * (rank - len(right)) + right
        for one, two in zip(ones, twos, strict=True):
            if one and two:
                self.unify(one, two)
        return self.resolve(tuple(one or two for one, two in zip(ones, twos, strict=True)))

    def regroup(self, dims: Dims, shape: Iterable[Sizes]) -> Dims:
        """Reshape: split and merge atoms so that they make up `shape`."""
        rest = [atom for dim in self.resolve(dims) for atom in dim]
        result: list[tuple[int, ...]] = []
        for target in shape:
            wanted, group = target, []
            while not is_one(wanted):
                if not rest:
                    raise ShapeMismatchError("a reshape does not keep the number of elements")
                atom = rest.pop(0)
                size = self.size(atom)
                if not _divides(size, wanted) and size != wanted:
                    if not _divides(wanted, size):
                        raise ShapeMismatchError("a reshape regroups dimensions that have no common split")
                    atom, tail = self._split(atom, wanted)
                    rest.insert(0, tail)
                    size = wanted
                group.append(atom)
                wanted = tuple(w // s for w, s in zip(wanted, size, strict=True))
            result.append(tuple(group))
        if rest:
            raise ShapeMismatchError("a reshape does not keep the number of elements")
        return self.resolve(tuple(result))

    def _split(self, atom: int, head: Sizes) -> tuple[int, int]:
        tail = tuple(size // h for size, h in zip(self.size(atom), head, strict=True))
        parts = (self.new(head), self.new(tail))
        self._parts[self._root(atom)] = parts
        self._leaves.clear()
        return parts

    def _unite(self, atom: int, other: int) -> None:
        self._same[atom] = other
        self._leaves.clear()

    def _root(self, atom: int) -> int:
        while atom in self._same:
            atom = self._same[atom]
        return atom


def _divides(small: Sizes, large: Sizes) -> bool:
    """Whether `small` is a proper divisor of `large` in the sense that holds at every size."""
    return small != large and not is_one(small) and all(s and b % s == 0 for s, b in zip(small, large, strict=True))
