"""The iteration space of a kernel: its axes, and the address of every tensor along them.

An axis is an ordered set of atoms. Neighbouring atoms that every tensor lays out as one dimension are merged into a group;
strides are products of sizes, held symbolically, so the same text is right at every size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import Sizes
from tools.codegen.templates.shared.access import Access, Stride, multiply
from tools.codegen.templates.shared.host_sizes import host_size

WIDEST_KNOWN = 16
"""Neighbours of which it is of use to know that they are inside together: no access is wider."""
SMALL = 64
"""Sizes up to this have so few values that a kernel for each is compiled: heads, groups, components."""


@dataclass
class Axis:
    """One axis of the iteration space."""

    name: str
    """`rows`, `cols`, `outer`, `inner`: sizes are called `n_rows` and so on."""
    index: str
    """Variable that holds the position along it."""
    atoms: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...] = ()
    piece: int | None = None
    """Which piece of a concatenation it walks."""

    @property
    def size_name(self) -> str:
        """Name of the number of positions."""
        return f"n_{self.name}"

    def group_name(self, place: int) -> str:
        """Name of the size of one group."""
        return self.size_name if len(self.groups) == 1 else f"n_{self.name}_{place}"

    def part(self, place: int) -> str:
        """Name of the position within one group."""
        return self.index if len(self.groups) == 1 else f"{self.index}_{place}"


@dataclass
class Space:
    """Axes and accesses of one kernel; remembers which sizes its text uses."""

    kernel: Kernel
    axes: tuple[Axis, ...]
    accesses: tuple[Access, ...]
    used: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Sizes that the kernel takes as arguments, by name."""
    strides: dict[str, str] = field(default_factory=dict)
    """Run-time strides that the kernel takes, by argument name: host expression."""
    given: dict[tuple[int, ...], str] = field(default_factory=dict)
    """Sizes that the host function computes itself, by atoms."""
    parts_used: set[str] = field(default_factory=set)
    """Axes whose index is taken apart."""
    compiled_in: set[str] = field(default_factory=set)
    """Sizes and strides that the kernel takes as constants: divisions by them are a few instructions, wide loads are seen behind them."""
    few: Mapping[int, int] = field(default_factory=dict)
    """Atoms of few elements that no axis walks, and how many these are."""

    def __post_init__(self) -> None:
        """Give each piece of a concatenation an axis of its own; its position follows from the one along the whole."""
        for join in self.kernel.builder.joins if not self.pieces() else ():
            atoms = self.kernel.builder.atoms
            parts = [atoms.leaves(part) for part in join.parts]
            found = [Axis(f"part_{place}", f"at_{place}", part, (part,), place) for place, part in enumerate(parts) if part]
            self.axes = (*self.axes, *found)
            sizes = [host_size(self, part, {}) if part else "1" for part in parts]
            self.given = {**self.given, atoms.leaves((join.whole,)): f"({' + '.join(sizes)})"}
        for whole, (row, chunk) in self.kernel.builder.chunked.items():
            text = f"triton.cdiv({host_size(self, self.kernel.builder.atoms.leaves(row), {})}, {chunk})"
            self.given = {**self.given, self.kernel.builder.atoms.leaves((whole,)): text}
        for axis in self.axes:
            if len(axis.groups) > 1 and self._joined_group(axis) is not None:
                self.parts_used.add(axis.name)

    def pieces(self) -> list[tuple[int, Axis]]:
        """List the axes of a concatenation's pieces, by the number of the piece."""
        return [(axis.piece, axis) for axis in self.axes if axis.piece is not None]

    def with_pieces(self, atoms: frozenset[int]) -> frozenset[int]:
        """Add the atoms of a concatenation's pieces where it runs along some of `atoms`."""
        known = self.kernel.builder.atoms
        if not any(set(known.leaves((join.whole,))) & atoms for join in self.kernel.builder.joins):
            return atoms
        return atoms | {atom for _, axis in self.pieces() for atom in axis.atoms}

    def _joined_group(self, axis: Axis) -> int | None:
        wholes = [self.kernel.builder.atoms.leaves((join.whole,)) for join in self.kernel.builder.joins]
        return next((place for place, group in enumerate(axis.groups) if group in wholes), None)

    def _joined(self, axis: Axis) -> list[str]:
        """Write the position in each piece of a concatenation, and whether an element is of that piece."""
        group = self._joined_group(axis)
        if group is None:
            return []
        lines, before = [], axis.part(group)
        axes = dict(self.pieces())
        for place in range(len(self.kernel.builder.joins[0].parts)):
            size = self._use(axes[place].size_name, axes[place].atoms) if place in axes else "1"
            lines += [f"at_{place} = {before}", f"{piece_mask(place)} = (at_{place} >= 0) & (at_{place} < {size})"]
            before = f"at_{place} - {size}"
        return lines

    def axis(self, name: str) -> Axis:
        """Find an axis."""
        return next(axis for axis in self.axes if axis.name == name)

    def size(self, atoms: Iterable[int]) -> str:
        """Write the number of elements over `atoms`."""
        return self.monomial(tuple(self.kernel.builder.atoms.leaves(tuple(atoms)))) or "1"

    def monomial(self, stride: Stride) -> str:
        """Write a product of sizes and strides in the kernel's names."""
        return " * ".join(self._factors(stride))

    def _factors(self, stride: Stride) -> list[str]:
        rest, factors = list(stride), []
        for axis in self.axes:
            if axis.atoms and set(axis.atoms) <= set(rest):
                factors.append(self._use(axis.size_name, axis.atoms))
                rest = [symbol for symbol in rest if symbol not in axis.atoms]
        for axis in self.axes:
            for place, group in enumerate(axis.groups):
                if set(group) <= set(rest):
                    factors.append(self._use(axis.group_name(place), group))
                    rest = [symbol for symbol in rest if symbol not in group]
        for symbol in rest:
            if isinstance(symbol, int) and symbol in self.few:
                factors.append(str(self.few[symbol]))
                continue
            if not isinstance(symbol, str):
                raise LoweringError("a stride does not follow the axes of the kernel")
            tensor, dim = symbol.rsplit(":", 1)
            name = f"stride_{tensor}_{dim}"
            self.strides[name] = f"{tensor}.stride({dim})"
            factors.append(name)
        return factors

    def aligned(self, stride: Stride) -> str:
        """Write the product of sizes and strides by which an address moves; what hides its alignment from Triton is compiled in."""
        factors, count = self._factors(stride), self.kernel.builder.count
        self.compiled_in.update(name for name in factors if name in self.used and hides_alignment(count(self.used[name])[0]))
        return " * ".join(factors)

    def _use(self, name: str, atoms: tuple[int, ...]) -> str:
        self.used[name] = atoms
        return name

    def along(self, access: Access, axis: Axis) -> str:
        """Write the offset of `access` along `axis`; empty where it does not vary along it."""
        present = [place for place, group in enumerate(axis.groups) if group[-1] in access.strides]
        if not present:
            return ""
        if self._is_linear(access, axis):
            return self._term(axis.index, access.strides[axis.groups[-1][-1]])
        self.parts_used.add(axis.name)
        return " + ".join(self._term(axis.part(place), access.strides[axis.groups[place][-1]]) for place in present)

    def _term(self, index: str, stride: Stride) -> str:
        text = self.aligned(stride)
        if not text:
            return index
        return f"{index} * {text}" if " " not in text else f"{index} * ({text})"

    def _is_linear(self, access: Access, axis: Axis) -> bool:
        """Whether the tensor lies along the whole axis with one stride."""
        for outer, inner in zip(axis.groups, axis.groups[1:], strict=False):
            if outer[-1] not in access.strides or inner[-1] not in access.strides:
                return False
            if access.strides[outer[-1]] != multiply(access.strides[inner[-1]], *inner):
                return False
        return axis.groups[0][-1] in access.strides

    def parts(self, axis: Axis) -> list[str]:
        """Write the statements that take an axis's index apart into its groups."""
        if axis.name not in self.parts_used:
            return self._joined(axis)
        lines, rest = [], axis.index
        for place in range(len(axis.groups) - 1, 0, -1):
            size = self._divisor(axis, place)
            lines.append(f"{axis.part(place)} = {rest} % {size}")
            above = axis.part(0) if place == 1 else f"{axis.index}_above_{place}"
            lines.append(f"{above} = {rest} // {size}")
            rest = above
        return [*lines, *self._joined(axis)]

    def _divisor(self, axis: Axis, place: int) -> str:
        """Write the size of a group by which positions are divided; one that was the same in every trace, or is small, is compiled in."""
        name = self._use(axis.group_name(place), axis.groups[place])
        if is_fixed_divisor(self.kernel.builder.count(axis.groups[place])):
            self.compiled_in.add(name)
        return name

    def masked_alike(self, axis: Axis) -> str:
        """Write how many neighbours along an axis are inside or outside together, where Triton does not know it by the number of all.

        All are a multiple of the neighbours that lie side by side, a constant of the kernel: without it each one would be read by itself.
        """
        counts = [self.kernel.builder.count(group) for group in axis.groups]
        if len(axis.groups) < 2 or axis.name not in self.parts_used or not hides_alignment(math.prod(sizes[0] for sizes in counts)):
            return ""
        if not is_fixed_divisor(counts[-1]) or counts[-1][0] % 2:
            return ""
        name = f"({self._divisor(axis, len(axis.groups) - 1)} | {WIDEST_KNOWN})"
        return f"{name} & -{name}"

    def long(self, axis: Axis) -> str:
        """Write the conversion of positions along an axis to 64 bits; none where they are taken apart, which takes ten times as long then.

        A kernel without it needs the host's check of `guard`.
        """
        return "" if self.takes_apart(axis) else ".to(tl.int64)"

    def takes_apart(self, axis: Axis) -> bool:
        """Whether divisions take positions along an axis apart, and 31 bits hold every offset at the sizes as written."""
        return axis.name in self.parts_used and len(axis.groups) > 1 and not self.is_wide()

    def is_wide(self) -> bool:
        """Whether an offset may exceed 31 bits at the sizes as written."""
        return any(access.meta.numel >= 2**31 for access in self.accesses)


def is_fixed_divisor(sizes: Sizes) -> bool:
    """Whether a size by which positions are divided is a constant of its kernel."""
    return len(set(sizes)) == 1 or sizes[0] <= SMALL


def hides_alignment(size: int) -> bool:
    """Whether rows of so many elements can be read wide without Triton's knowing: all it asks of a number is whether 16 divides it."""
    return size % 16 != 0 and size % 2 == 0


def piece_mask(place: int) -> str:
    """Name what tells whether an element is of one piece of a concatenation."""
    return f"in_{place}"
