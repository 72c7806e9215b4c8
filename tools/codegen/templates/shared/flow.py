"""How a tensor is walked along the atoms of a kernel: strides in elements at the sizes as written, and what is random."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.graph import TensorMeta
from tools.codegen.templates.shared.access import Access, Symbol
from tools.codegen.templates.shared.work import WARP

SAME = frozenset({"cast", "mod", "abs", "floor"})
"""Operations whose result moves on as their first operand does, almost everywhere."""


@dataclass(frozen=True)
class Flow:
    """One tensor as it is walked."""

    strides: Mapping[int, int]
    """By leaf atom."""
    random: frozenset[int] = field(default_factory=frozenset)
    """Atoms along which positions are data."""
    alike: frozenset[int] = field(default_factory=frozenset)
    """Atoms along which a warp's neighbours, or more of them, have one position."""

    def stride(self, atom: int) -> int | None:
        """Elements between neighbours along an atom; 0 where it stays, None where that is data."""
        return None if atom in self.random else self.strides.get(atom, 0)


def dim_strides(meta: TensorMeta) -> tuple[int, ...]:
    """Strides of a contiguous tensor of that shape: what is assumed of others."""
    return tuple(math.prod(meta.written[place + 1 :]) for place in range(len(meta.shape)))


def flow_of(b: Builder, access: Access) -> Flow:
    """Walk a tensor along its own dimensions."""
    steps = dim_strides(access.meta)

    def size(symbol: Symbol) -> int:
        return b.atoms.size(symbol)[0] if isinstance(symbol, int) else steps[int(symbol.rpartition(":")[2])]

    return Flow({atom: math.prod(size(symbol) for symbol in stride) for atom, stride in access.strides.items()})


def flow_at(b: Builder, positions: Iterable[int], meta: TensorMeta) -> Flow:
    """Walk a tensor at positions that are expressions."""
    strides: dict[int, int] = {}
    random, alike = frozenset[int](), frozenset[int]()
    for step, position in zip(dim_strides(meta), positions, strict=True):
        found = _affine(b, position)
        random, alike = random | found.random, alike | found.alike
        for atom, stride in found.strides.items():
            strides[atom] = strides.get(atom, 0) + stride * step
    return Flow(strides, random, frozenset(atom for atom in alike if not strides[atom]))


def share_of(b: Builder, guard: int) -> float:
    """Part of the positions at which comparisons of a position with numbers hold; all of them where neither that nor a part is known."""
    begin, end = _part(b, guard)
    return max(0.0, end - begin)


def _part(b: Builder, guard: int) -> tuple[float, float]:
    record = b.exprs[guard]
    if guard in b.shares:
        return 0.0, b.shares[guard].part
    if record.op == "and":
        one, two = (_part(b, arg) for arg in record.args)
        return max(one[0], two[0]), min(one[1], two[1])
    if record.op not in ("lt", "ge") or b.exprs[record.args[0]].op != "index":
        return 0.0, 1.0
    place = _number(b, record.args[1]) / b.count(b.exprs[record.args[0]].extra)[0]
    return (0.0, min(1.0, place)) if record.op == "lt" else (min(1.0, place), 1.0)


def _affine(b: Builder, expr: int) -> Flow:
    record = b.exprs[expr]
    if not b.leaves_of(record):
        return Flow({})
    if record.op == "index":
        leaves = b.atoms.leaves(record.extra)
        return Flow({atom: math.prod(b.atoms.size(after)[0] for after in leaves[place + 1 :]) for place, atom in enumerate(leaves)})
    if record.op in ("add", "sub"):
        one, two = (_affine(b, arg) for arg in record.args)
        return _sum(one, two, 1 if record.op == "add" else -1)
    if record.op in ("mul", "floordiv") and (factor := _number(b, record.args[1])):
        found = _affine(b, record.args[0])
        change = {atom: _scaled(stride, factor) if record.op == "mul" else int(stride // factor) for atom, stride in found.strides.items()}
        alike = frozenset(atom for atom, stride in found.strides.items() if record.op == "floordiv" and 0 < stride * WARP <= factor)
        return Flow(change, found.random, found.alike | alike)
    if record.op in SAME or record.op == "where":
        # of a choice the side that moves: the other one is a limit
        sides = [_affine(b, arg) for arg in (record.args[:1] if record.op in SAME else reversed(record.args[1:]))]
        return next((side for side in sides if side.strides or side.random), sides[0])
    return Flow({}, b.leaves_of(record))


def _sum(one: Flow, two: Flow, sign: int) -> Flow:
    both = {atom: one.strides.get(atom, 0) + sign * two.strides.get(atom, 0) for atom in {*one.strides, *two.strides}}
    return Flow(both, one.random | two.random, one.alike | two.alike)


def _scaled(stride: int, factor: float) -> int:
    """Multiply a stride; one that is less than an element still moves on."""
    return int(stride * factor) if isinstance(factor, int) else max(1, round(stride * factor)) if stride else 0


def _number(b: Builder, expr: int) -> float:
    """Read a number at the sizes as written; 0 where it is none."""
    record = b.exprs[expr]
    if record.op == "const" and record.extra[0] in ("int", "float"):
        return (int if record.extra[0] == "int" else float)(record.extra[1])
    if record.op in ("add", "sub", "mul", "mean"):
        one, two = (_number(b, arg) for arg in record.args)
        return {"add": one + two, "sub": one - two, "mul": one * two, "mean": one / two if two else 0}[record.op]
    return b.arguments[record.extra].values[0] if record.op == "argument" else 0
