"""Which keys an attention has to look at: what its mask of positions leaves of them for a tile of queries.

Read off logits that are minus infinity, or weights without a softmax that are zero, unless positions differ by less than a number
(windows), or by no more than one (causal masks, with or without an offset), or unless a key lies before the end of its sequence. Keys
outside are not loaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import Expr
from tools.codegen.ir.kernel import Kernel

FLIPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


@dataclass(frozen=True)
class Position:
    """A whole number made of a row, a column, a constant, and one value that is the same for a whole tile."""

    row: int = 0
    col: int = 0
    constant: int = 0
    values: tuple[tuple[int, int], ...] = ()
    """Factors and expressions."""

    def plus(self, other: Position, sign: int = 1) -> Position:
        """Add another, or take it away."""
        values = (*self.values, *((sign * factor, expr) for factor, expr in other.values))
        return Position(self.row + sign * other.row, self.col + sign * other.col, self.constant + sign * other.constant, values)


@dataclass(frozen=True)
class Bound:
    """A limit of the columns: `col <= sign * row + rest` from above, `col >= ...` from below."""

    above: bool
    with_row: bool
    rest: Position
    """Without rows and columns."""


def bounds_of(kernel: Kernel) -> tuple[Bound, ...]:
    """List the limits that hold for every column that counts."""
    attention = kernel.attention
    assert attention is not None
    finder = _Finder(kernel)
    if attention.softmax:
        return tuple(finder.allowed(attention.logits))
    summed = tuple(finder.counted(attention.summed[1])) if attention.summed else None
    return tuple(bound for bound in finder.counted(attention.logits) if summed is None or bound in summed)


def is_causal(kernel: Kernel) -> bool:
    """Whether only keys up to a query's own place are walked, so that later queries have more to do than earlier ones."""
    assert kernel.attention is not None
    return kernel.attention.causal or _last_key(kernel) is not None


def walked_share(kernel: Kernel, n_rows: int, n_cols: int, tile: int) -> float:
    """Say which part of the keys a tile of queries walks, on average: under a causal mask half of a square, of a window its width."""
    assert kernel.attention is not None
    if kernel.attention.causal:
        return 0.5
    last = _last_key(kernel)
    if last is not None:
        return min(1.0, max(0.0, n_rows / 2 + last) / n_cols)
    edges: dict[bool, list[int]] = {True: [], False: []}
    for bound in bounds_of(kernel):
        number = written_number(kernel, bound.rest)
        if bound.with_row and number is not None:
            edges[bound.above].append(number)
    width = min(edges[True]) - max(edges[False]) + tile if edges[True] and edges[False] else n_cols
    return min(1.0, max(0.0, width / n_cols))


def written_number(kernel: Kernel, rest: Position) -> int | None:
    """Work out what a limit is at the sizes as written; None where it is made of data."""
    number, b = rest.constant, kernel.builder
    for factor, expr in rest.values:
        record = b.exprs[expr]
        if record.op != "argument":
            return None
        number += factor * int(b.arguments[record.extra].values[0])
    return number


def _last_key(kernel: Kernel) -> int | None:
    """Find how far behind a query's own place its last key lies, where all that is known of keys is such a limit; None elsewhere."""
    bounds = bounds_of(kernel)
    last = [bound.rest.constant for bound in bounds if bound.above and bound.with_row and not bound.rest.values]
    return min(last) if last and all(bound.above for bound in bounds) else None


class _Finder:
    """Looks for limits in one region."""

    def __init__(self, kernel: Kernel) -> None:
        contraction = kernel.contraction
        assert contraction is not None
        self.b: Builder = kernel.builder
        leaves = self.b.atoms.leaves
        self.rows, self.cols = leaves(contraction.rows), leaves(contraction.cols)

    def allowed(self, expr: int) -> Iterator[Bound]:
        """Yield what holds wherever a logit is not minus infinity; what is added to that counts as finite."""
        record = self.b.exprs[expr]
        if record.op in ("cast", "add"):
            yield from (bound for arg in record.args for bound in self.allowed(arg))
        if record.op != "where":
            return
        condition, yes, no = record.args
        if self._is_nothing(no):
            yield from self._true(condition)
            yield from self.allowed(yes)
        elif self._is_nothing(yes):
            yield from self._false(condition)
            yield from self.allowed(no)

    def counted(self, expr: int) -> Iterator[Bound]:
        """Yield what holds wherever a weight is not zero; what is infinite or no number counts as finite."""
        record = self.b.exprs[expr]
        if record.dtype == "bool":
            yield from self._true(expr)
        elif record.op in ("cast", "abs", "neg", "div"):
            yield from self.counted(record.args[0])
        elif record.op == "mul":
            yield from (bound for arg in record.args for bound in self.counted(arg))
        elif record.op == "where":
            condition, yes, no = record.args
            if self._is_number(no, 0.0):
                yield from self._true(condition)
                yield from self.counted(yes)
            elif self._is_number(yes, 0.0):
                yield from self._false(condition)
                yield from self.counted(no)

    def _is_nothing(self, expr: int) -> bool:
        return self._is_number(expr, -math.inf)

    def _is_number(self, expr: int, number: float) -> bool:
        record = self.b.exprs[expr]
        while record.op == "cast":
            record = self.b.exprs[record.args[0]]
        return record.op == "const" and record.extra[0] in ("float", "int") and float(record.extra[1]) == number

    def _true(self, expr: int) -> Iterator[Bound]:
        """Yield what holds where a condition does."""
        record = self.b.exprs[expr]
        if record.op == "and":
            yield from (bound for arg in record.args for bound in self._true(arg))
        elif record.op == "not":
            yield from self._false(record.args[0])
        elif record.op in NEGATED:
            yield from self._compared(record.op, record)

    def _false(self, expr: int) -> Iterator[Bound]:
        """Yield what holds where a condition does not."""
        record = self.b.exprs[expr]
        if record.op == "or":
            yield from (bound for arg in record.args for bound in self._false(arg))
        elif record.op == "not":
            yield from self._true(record.args[0])
        elif record.op in NEGATED:
            yield from self._compared(NEGATED[record.op], record)

    def _compared(self, op: str, record: Expr) -> Iterator[Bound]:
        sides = [self._position(arg) for arg in record.args]
        if sides[0] is None or sides[1] is None:
            return
        # left - right < 0, or <= 0
        apart = sides[0].plus(sides[1], -1)
        if op in ("gt", "ge"):
            apart, op = Position().plus(apart, -1), FLIPPED[op]
        apart = apart.plus(Position(constant=1)) if op == "lt" else apart
        if abs(apart.col) != 1 or (apart.row and apart.row != -apart.col):
            return
        rest = Position(constant=-apart.col * apart.constant, values=tuple((-apart.col * factor, expr) for factor, expr in apart.values))
        yield Bound(apart.col == 1, bool(apart.row), rest)

    def _position(self, expr: int) -> Position | None:
        record = self.b.exprs[expr]
        if record.op == "index":
            atoms = self.b.atoms.leaves(record.extra)
            return Position(row=1) if atoms == self.rows else Position(col=1) if atoms == self.cols else None
        if record.op == "const" and record.extra[0] == "int":
            return Position(constant=int(record.extra[1]))
        if record.op == "cast" and record.dtype in ("int32", "int64"):
            return self._position(record.args[0])
        if record.op in ("add", "sub"):
            one, two = (self._position(arg) for arg in record.args)
            return None if one is None or two is None else one.plus(two, 1 if record.op == "add" else -1)
        varies = set(self.b.atoms.leaves(tuple(record.atoms))) & {*self.rows, *self.cols}
        whole = record.dtype in ("int32", "int64", "weak_int")
        return Position(values=((1, expr),)) if whole and not varies else None
