"""What the products of a region multiply: each operand as an expression over the sum, less what can be taken out of it.

A factor that does not vary along the sum scales the result instead. Operands in float32 that a shorter dtype holds exactly are multiplied
in that. Where values are stacked along the last summed dimension (two numbers of four bits in a byte), or shifted out of one word along it
(eight of four bits), each is a product of its own over its part of the sum, so that what holds them is read once and as it lies.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import Expr, LoweringError
from tools.codegen.ir.kernel import Contraction, Kernel
from tools.codegen.ir.values.exact import SHORT_FLOATS, exact_dtypes

PACKED = (2, 4, 8, 16)
"""Numbers of one word that are products of their own."""
ROUNDINGS = frozenset({*SHORT_FLOATS, "float32"})
"""Casts of an operand that its factors are taken through: what they round is not rounded then."""


@dataclass(frozen=True)
class Product:
    """One product of a region."""

    expr: int
    """Its sum, as an expression of the epilogue."""
    inner: tuple[int, ...]
    """Atoms that it sums over one after the other, without those that are written out."""
    stacked: int | None
    """An atom of the sum that is written out, position by position; none where there is none."""
    left: tuple[int, ...]
    """The left operand's expression at each of those positions; one where nothing is stacked."""
    right: tuple[int, ...]
    factors: tuple[int, ...]
    """What the sum is multiplied by."""
    dtype: str
    """What the operands are multiplied in."""
    chunked: bool
    """Whether each step has a sum of its own: float32 is wanted, and tensor cores lose digits over long sums."""


def products_of(kernel: Kernel) -> tuple[Product, ...]:
    """Plan every product of a region; raises LoweringError where one cannot be written."""
    return tuple(_product(kernel, contraction) for contraction in kernel.contractions)


def _product(kernel: Kernel, contraction: Contraction) -> Product:
    b = kernel.builder
    inner = b.atoms.leaves(contraction.inner)
    stacked = _stacked(kernel, inner)
    if stacked is None:
        stacked = _packed(b, contraction, inner)
    varying = frozenset(inner)
    sides, factors = [], []
    for side in (contraction.left, contraction.right):
        rest, taken = _without_factors(b, side.value.id, varying, contraction.dtype)
        sides.append(rest)
        factors += taken
    dtype = contraction.dtype
    if dtype == "float32":
        shared = exact_dtypes(b, sides[0]) & exact_dtypes(b, sides[1])
        dtype = next((each for each in SHORT_FLOATS if each in shared), dtype)
    left, right = (tuple(_at(b, side, place) for place in range(_count(kernel, stacked))) for side in sides)
    walked = tuple(atom for atom in inner if atom != stacked)
    if not walked:
        raise LoweringError("a product over what is stacked alone is not generated")
    return Product(contraction.expr, walked, stacked, left, right, tuple(factors), dtype, contraction.dtype == "float32")


def _stacked(kernel: Kernel, inner: tuple[int, ...]) -> int | None:
    """Find the one dimension along which values are stacked, which is summed over; raises LoweringError where it is another one."""
    atoms = kernel.builder.atoms
    for join in kernel.builder.joins:
        whole = atoms.leaves((join.whole,))
        if any(atoms.leaves(part) for part in join.parts) or len(whole) > 1 or whole[0] not in inner:
            raise LoweringError("a product and a concatenation that is not summed over do not share a kernel")
        return whole[0]
    return None


def _packed(b: Builder, contraction: Contraction, inner: tuple[int, ...]) -> int | None:
    """Find the last dimension of a sum where what is read once for all of it is shifted by where one is in it; None where there is none."""
    last = inner[-1]
    if len(inner) < 2 or len(set(b.atoms.size(last))) > 1 or b.atoms.size(last)[0] not in PACKED:
        return None
    for expr in b.behind((contraction.left.value.id, contraction.right.value.id)):
        record = b.exprs[expr]
        if record.op == "shift_right" and [varies(b, arg, frozenset({last})) for arg in record.args] == [False, True]:
            return last
    return None


def _count(kernel: Kernel, stacked: int | None) -> int:
    return 1 if stacked is None else kernel.builder.atoms.size(stacked)[0]


def varies(b: Builder, expr: int, atoms: frozenset[int]) -> bool:
    """Whether an expression varies along some of `atoms`."""
    return bool(set(b.atoms.leaves(tuple(b.exprs[expr].atoms))) & atoms)


def _without_factors(b: Builder, expr: int, inner: frozenset[int], dtype: str) -> tuple[int, list[int]]:
    """Take factors that do not vary along the sum out of an operand, where the rest is exact in what it is multiplied in."""
    rest, factors = expr, list[int]()
    while True:
        record = b.exprs[rest]
        if record.op == "cast" and record.extra in ROUNDINGS:
            rest = record.args[0]
        elif record.op == "mul" and sum(varies(b, arg, inner) for arg in record.args) == 1:
            varying = next(arg for arg in record.args if varies(b, arg, inner))
            factors += [arg for arg in record.args if arg != varying]
            rest = varying
        else:
            break
    exact = exact_dtypes(b, rest)
    wanted = {dtype} if dtype in SHORT_FLOATS else set(SHORT_FLOATS)
    return (rest, factors) if factors and exact & wanted else (expr, [])


def _at(b: Builder, expr: int, place: int) -> int:
    """Write an operand as it is at one position of what is stacked, without casts that change nothing."""
    return _Position(b, place).of(expr)


class _Position:
    """Rewrites expressions for one position: a stack is the value that stands there."""

    def __init__(self, b: Builder, place: int) -> None:
        self.b, self.place = b, place
        self.known: dict[int, int] = {}

    def of(self, expr: int) -> int:
        """Rewrite one expression."""
        if expr not in self.known:
            record = self.b.exprs[expr]
            if record.op == "join":
                self.known[expr] = self.of(record.args[self.place])
            elif record.op == "cast" and record.extra in exact_dtypes(self.b, record.args[0]):
                self.known[expr] = self.b.compute(Value(self.b, self.of(record.args[0])), record.dtype).id
            else:
                self.known[expr] = self._rebuilt(expr, record)
        return self.known[expr]

    def _rebuilt(self, expr: int, record: Expr) -> int:
        args = tuple(self.of(arg) for arg in record.args)
        if args == record.args:
            return expr
        return self.b.with_args(record, tuple(Value(self.b, arg) for arg in args)).id
