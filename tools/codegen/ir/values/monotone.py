"""What a row is in the order of: a rising function of a simpler value puts it in the same order, and makes ties only by rounding.

`topk(softmax(x))` picks what `topk(x)` picks. The simpler value has fewer bits (bfloat16 logits of a float32 softmax), needs no pass before
it is put in order, and tells apart what underflow or rounding has made equal.
"""

from __future__ import annotations

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import Fold

RISING = frozenset({"exp", "exp_fast", "sigmoid", "tanh", "log", "log1p", "expm1", "sqrt"})
"""Maps of one operand that rise wherever they are defined."""
POSITIVE = frozenset({"exp", "exp_fast", "sigmoid"})


def behind(b: Builder, value: Value, atoms: tuple[int, ...]) -> Value:
    """Find the simplest value of which a float is a rising function along atoms."""
    along = frozenset(b.atoms.leaves(atoms))
    while (inner := _inner(b, value.id, along)) is not None:
        value = Value(b, inner)
    return value


def applied(b: Builder, value: Value, inner: Value, to: Value) -> Value:
    """Apply the function by which `value` is made of `inner` to another value."""
    known = {inner.id: to.id}

    def of(expr: int) -> int:
        if expr not in known:
            record = b.exprs[expr]
            args = tuple(of(arg) for arg in record.args) if not record.along else record.args
            known[expr] = expr if args == record.args else b.apply(record, args).id
        return known[expr]

    return Value(b, of(value.id))


def _inner(b: Builder, expr: int, along: frozenset[int]) -> int | None:
    record = b.exprs[expr]
    if not is_floating(record.dtype):
        return None
    varying = [bool(along & b.leaves_of(b.exprs[arg])) for arg in record.args]
    if record.op in RISING:
        # a square root or a logarithm of a negative number is NaN, which comes before all others
        return record.args[0] if record.op not in ("sqrt", "log", "log1p") or _is_positive(b, record.args[0]) else None
    if record.op in ("add", "sub") and varying == [True, False]:
        return record.args[0]
    if record.op == "add" and varying == [False, True]:
        return record.args[1]
    if record.op in ("div", "mul") and varying == [True, False] and _is_positive(b, record.args[1]):
        return record.args[0]
    return None


def _is_positive(b: Builder, expr: int) -> bool:
    """Whether a value is above zero, or a NaN of a row that is NaN everywhere."""
    record = b.exprs[expr]
    if record.op == "const":
        return float(record.extra[1]) > 0
    if record.reduces(Fold.SUM):
        return b.exprs[record.args[0]].op in POSITIVE
    return record.op in POSITIVE
