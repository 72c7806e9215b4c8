"""Whole numbers of 64 bits that 32 hold: positions and what is made of them take several times as long in 64."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import Expr

Range = tuple[int, int]
"""The least and the largest that a value can be."""
DTYPES: dict[str, Range] = {
    "uint8": (0, 255), "int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip
LONG: Range = (-(2**63), 2**63 - 1)
POSITION: Range = (0, 2**31 - 2)
"""Of a dimension whose length is not known, in a tensor of fewer than 2 ** 31 elements."""
COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})


def _sum(x: Range, y: Range) -> Range:
    return x[0] + y[0], x[1] + y[1]


def _difference(x: Range, y: Range) -> Range:
    return x[0] - y[1], x[1] - y[0]


def _product(x: Range, y: Range) -> Range:
    corners = [one * other for one in x for other in y]
    return min(corners), max(corners)


def _quotient(x: Range, y: Range) -> Range | None:
    return (x[0] // y[1], x[1] // y[0]) if x[0] >= 0 and y[0] > 0 else None


def _rest(x: Range, y: Range) -> Range | None:
    most = max(abs(y[0]), abs(y[1])) - 1
    return (0 if x[0] >= 0 else -most, min(most, x[1]) if x[1] >= 0 else 0) if y[0] > 0 else None


def _either(x: Range, y: Range) -> Range:
    return min(x[0], y[0]), max(x[1], y[1])


def _masked(x: Range, y: Range) -> Range | None:
    most = [one[1] for one in (x, y) if one[0] >= 0]
    return (0, min(most)) if most else None


def _shifted_right(x: Range, y: Range) -> Range | None:
    """By fewer than 32 places: a shift in 32 bits by more is another one."""
    corners = [one >> other for one in x for other in y] if y[0] >= 0 and y[1] < 32 else []
    return (min(corners), max(corners)) if corners else None


ARITHMETIC: dict[str, Callable[[Range, Range], Range | None]] = {
    "add": _sum, "sub": _difference, "mul": _product, "floordiv": _quotient, "mod": _rest,
    "maximum": _either, "minimum": _either, "fmax": _either, "fmin": _either, "where": _either,
    "bitand": _masked, "shift_right": _shifted_right,
}  # fmt: skip


def needless_casts(b: Builder, stored: Iterable[int], *, is_wide: bool = True) -> frozenset[int]:
    """Find conversions to 64 bits that change nothing: all that is made of them fits in 32, until it is compared or a position.

    Tensors have fewer than 2 ** 31 elements, and so positions, unless the kernel `is_wide`.
    """
    held = [found is not None and found[0] >= -(2**31) and found[1] < 2**31 for found in _ranges(b, is_wide=is_wide)]
    wide = set(stored)
    for place in range(len(b.exprs) - 1, -1, -1):
        record = b.exprs[place]
        if record.op in COMPARISONS or record.op in ("read", "pick", "cast"):
            continue
        if record.op in ARITHMETIC and held[place] and place not in wide:
            continue
        wide.update(record.args)
    casts = (place for place, record in enumerate(b.exprs) if record.op == "cast" and record.extra == record.dtype == "int64")
    return frozenset(place for place in casts if held[place] and place not in wide)


def is_negative_nowhere(b: Builder, expr: int) -> bool:
    """Whether a whole number is known to be zero or more."""
    found = range_of(b, expr)
    return found is not None and found[0] >= 0


def range_of(b: Builder, expr: int) -> Range | None:
    """Say what a whole number can be; None where that is not known."""
    known: dict[int, Range | None] = {}

    def of(place: int) -> Range | None:
        if place not in known:
            record = b.exprs[place]
            known[place] = _range_of(b, record, [of(arg) for arg in record.args])
        return known[place]

    return of(expr)


def ranges_of(b: Builder, expr: int) -> tuple[Range, ...] | None:
    """Say what a whole number can be in every trace; None where that is not known."""
    known: dict[int, tuple[Range, ...] | None] = b.__dict__.setdefault("_ranges_of", {})
    for place in sorted(b.behind([expr], known.keys())):
        if place not in known:
            below = [known[arg] for arg in b.exprs[place].args]
            each = (_range_of(b, b.exprs[place], [x[n] if x else None for x in below], n) for n in range(b.atoms.traces))
            found = tuple(one for one in each if one is not None)
            known[place] = found if len(found) == b.atoms.traces else None
    return known[expr]


def _ranges(b: Builder, *, is_wide: bool) -> list[Range | None]:
    found: list[Range | None] = []
    for record in b.exprs:
        known = _range_of(b, record, [found[arg] for arg in record.args])
        found.append(POSITION if known is None and record.op == "index" and not is_wide else known)
    return found


def _range_of(b: Builder, record: Expr, args: list[Range | None], trace: int | None = None) -> Range | None:
    """Say what one expression can be, of what it is made of: in one trace, or in all of them."""
    if record.op == "const":
        kind, text = record.extra
        return (int(text), int(text)) if kind == "int" else None
    if record.op in ("index", "size", "argument"):
        return _range_of_sizes(b, record, trace)
    if record.op in ("load", "read"):
        place = record.extra if record.op == "load" else record.extra[0]
        return DTYPES.get(b.loads[place].meta.dtype)
    if record.op == "cast":
        return _wrapped(args[0], str(record.extra))
    if record.op in ARITHMETIC:
        x, y = args[-2:]
        return _wrapped(ARITHMETIC[record.op](x, y), record.dtype) if x is not None and y is not None else None
    return None


def _wrapped(found: Range | None, dtype: str) -> Range | None:
    """Say what is left of a range in a dtype, which begins anew beyond its largest."""
    held = LONG if dtype == "int64" else DTYPES.get(dtype)
    if held is None or (found is not None and held[0] <= found[0] and found[1] <= held[1]):
        return found
    return DTYPES.get(dtype)


def _range_of_sizes(b: Builder, record: Expr, trace: int | None) -> Range | None:
    """Say what a position, or a number that comes of sizes, can be in one trace, or in all where sizes do not vary."""
    values = b.arguments[record.extra].values if record.op == "argument" else b.count(record.extra)
    number = values[trace] if trace is not None else values[0] if len(set(values)) == 1 else None
    if not isinstance(number, int):
        return None
    return (0, number - 1) if record.op == "index" else (number, number)
