"""What the kernels of a tile region read and write: each access with how its positions run through memory."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.graph import Ref
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.flow import Flow, flow_at, flow_of, share_of
from tools.codegen.templates.tile.pairs import pairs
from tools.records import ITEM_BYTES

LARGE = 2**24
"""Bytes of a tensor of which an L2 does not keep most until it is read again."""


@dataclass(frozen=True)
class Touched:
    """One read or write of a tensor."""

    access: Access
    flow: Flow
    exprs: frozenset[int]
    """Leaf atoms over which it varies."""
    positions: int
    """How many positions these are, at the sizes as written."""
    share: float = 1.0
    """Part of the positions at which anything is read."""
    pair: tuple[int, ...] = ()
    """Atoms that count pairs of neighbours, of which this is one."""
    sampled: bool = False
    """Whether its positions are coordinates rounded down: of an image, whose neighbours mostly lie side by side."""

    @property
    def is_repeated(self) -> bool:
        """Whether more is read of a tensor than it has, and it has more than an L2 keeps."""
        whole = self.access.meta.numel
        return not self.access.is_output and not self.sampled and self.positions > whole and whole * self.item > LARGE

    def stride(self, atom: int) -> int | None:
        """Elements between neighbours along an atom; 0 where it does not vary along it."""
        return self.flow.stride(atom) if atom in self.exprs else 0

    @cached_property
    def item(self) -> int:
        """Bytes of an element."""
        return ITEM_BYTES[self.access.meta.dtype]


def alike(touched: Sequence[Touched], own: Iterable[Ref]) -> dict[int, int]:
    """Number accesses, by identity, so that those have one number which run through memory alike, as pieces of a concatenation do.

    Each tensor of the region's own has numbers by itself.
    """
    numbers: dict[Hashable, int] = {}
    apart = frozenset(own)

    def number(each: Touched) -> int:
        walked = tuple(sorted(each.flow.strides.items())), each.flow.random, each.flow.alike
        said = each.exprs, each.positions, each.share, each.pair, each.sampled, each.item, each.access.meta.numel
        return numbers.setdefault((walked, said, each.access.ref if each.access.ref in apart else None), len(numbers))

    return {id(each): number(each) for each in touched}


def reads(b: Builder, needed: Sequence[int], accesses: Sequence[Access]) -> list[Touched]:
    """List what is loaded at a region's own positions, and what is read at positions that are computed."""
    found, twos = [], pairs(b, needed)
    for expr in needed:
        record = b.exprs[expr]
        if record.op == "load":
            atoms = b.leaves_of(record)
            found.append(Touched(accesses[record.extra], flow_of(b, accesses[record.extra]), atoms, _positions(b, atoms)))
        elif record.op == "read":
            place, guarded = record.extra
            positions = record.args[:-1] if guarded else record.args
            share = share_of(b, record.args[-1]) if guarded else 1.0
            atoms, pair = b.leaves_of(record), twos[expr][2] if expr in twos else ()
            rounded = any(b.exprs[expr].op == "floor" for position in positions for expr in b.made_of(Value(b, position)))
            flow = flow_at(b, positions, accesses[place].meta)
            found.append(Touched(accesses[place], flow, atoms, _positions(b, atoms), share, pair, rounded and bool(flow.random)))
    return found


def writes(kernel: Kernel, accesses: Sequence[Access]) -> list[Touched]:
    """List what is stored, in the order of the outputs."""
    b, found = kernel.builder, []
    for output, access in zip(kernel.outputs, accesses[len(accesses) - len(kernel.outputs) :], strict=True):
        atoms = frozenset(b.atoms.leaves([atom for dim in output.dims for atom in dim]))
        flow = flow_at(b, output.scatter.positions, output.meta) if output.scatter else flow_of(b, access)
        guard = output.scatter.guard if output.scatter else None
        found.append(Touched(access, flow, atoms, _positions(b, atoms), 1.0 if guard is None else share_of(b, guard)))
    return found


def _positions(b: Builder, atoms: Iterable[int]) -> int:
    return math.prod(b.atoms.size(atom)[0] for atom in atoms)
