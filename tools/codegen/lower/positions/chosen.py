"""One formula for two that are alike: what differs between them is chosen where it differs, and all else is made once.

The halves of a rotary embedding are such: the same tensors at other positions, and another sign.
"""

from __future__ import annotations

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import Expr

MOST_APART = 2
"""Values that two formulas may have of their own, each of which is chosen by itself."""
WHOLE = frozenset({"load", "const", "argument", "size", "index", "pick", "join", "turn", "product"})
"""Expressions that have no formula to compare."""


def chosen(b: Builder, condition: Value, otherwise: Value, yes: Value, no: Value) -> Value:
    """Choose by a condition, of which `otherwise` is the opposite, between two formulas: one formula of what is chosen where it can be."""
    choice = _Choice(b, condition, otherwise)
    found = choice.of(yes.id, no.id)
    if found is None or choice.apart > MOST_APART or not choice.merged:
        return b.call("where", condition, yes, no)
    return Value(b, found)


class _Choice:
    """Makes one formula of two."""

    def __init__(self, b: Builder, condition: Value, otherwise: Value) -> None:
        self.b, self.condition, self.otherwise = b, condition, otherwise
        self.apart = 0
        """Values that are chosen by themselves, positions of reads aside."""
        self.merged = 0
        """Reads that were two."""

    def of(self, yes: int, no: int) -> int | None:
        """Make one formula; None where the two have nothing in common."""
        if self._same(yes, no):
            return yes
        one, two = self.b.exprs[yes], self.b.exprs[no]
        if (one.op == "neg") != (two.op == "neg"):
            same = self.of(one.args[0] if one.op == "neg" else yes, two.args[0] if two.op == "neg" else no)
            return None if same is None else self._signed(same, one.op == "neg")
        if "add" in (one.op, two.op) and {one.op, two.op} <= {"add", "sub"} and one.dtype == two.dtype:
            return self._sum(one, two)
        if (one.op, one.dtype, one.extra) != (two.op, two.dtype, two.extra) or one.along or one.op in WHOLE:
            return None
        if one.op == "read":
            return self._read(yes, one, two)
        return self.b.apply(one, tuple(self._either(*pair) for pair in zip(one.args, two.args, strict=True))).id

    def _sum(self, one: Expr, two: Expr) -> int:
        """Add what the terms of two sums have in common; the terms of one of them in the other order, if they have more in common then."""
        turned = (one.args[::-1], two.args) if one.op == "add" else (one.args, two.args[::-1])
        before, found = (self.apart, self.merged), list[tuple[int, int, int]]()
        for left, right in ((one.args, two.args), turned):
            self.apart, self.merged = before
            first, second = (self._either(*pair) for pair in zip(left, right, strict=True))
            if one.op != two.op:
                second = self._signed(second, one.op == "sub")
            total = self.b.call("add", Value(self.b, first), Value(self.b, second)).id
            found.append((self.apart, self.merged, total))
        self.apart, self.merged, total = min(found, key=lambda each: each[0])
        return total

    def _either(self, yes: int, no: int) -> int:
        found = self.of(yes, no)
        if found is None:
            self.apart += 1
            return self._where(yes, no)
        return found

    def _where(self, yes: int, no: int) -> int:
        return yes if self._same(yes, no) else self.b.call("where", self.condition, Value(self.b, yes), Value(self.b, no)).id

    def _same(self, yes: int, no: int) -> bool:
        """Whether two expressions are one, or positions along dimensions that have become one."""
        one, two, leaves = self.b.exprs[yes], self.b.exprs[no], self.b.atoms.leaves
        return yes == no or (one.op == two.op == "index" and leaves(one.extra) == leaves(two.extra))

    def _signed(self, expr: int, negative: bool) -> int:
        """Change the sign where the condition holds, or where it does not."""
        value = Value(self.b, expr)
        changed = self.b.call("neg", value)
        return self._where(changed.id, expr) if negative else self._where(expr, changed.id)

    def _read(self, yes: int, one: Expr, two: Expr) -> int | None:
        """Read one tensor at one of two positions, each of which is inside of it where it is chosen."""
        place, guarded = one.extra
        guards = [self._rest(record.args[-1], side) for record, side in ((one, self.condition), (two, self.otherwise)) if guarded]
        if guards and guards[0] != guards[1]:
            return None
        count = len(one.args) - guarded
        positions = [Value(self.b, self._where(a, c)) for a, c in zip(one.args[:count], two.args[:count], strict=True)]
        self.merged += 1
        rest = guards[0] if guards else None
        found = self.b.read(place, tuple(positions), None if rest is None else Value(self.b, rest))
        self.b.label(found, self.b.labels.get(yes, f"{self.b.loads[place].ref.name}_at"))
        return found.id

    def _rest(self, guard: int, known: Value) -> int | None:
        """What a guard asks besides what is known to hold; None where that is nothing."""
        if guard == known.id:
            return None
        record = self.b.exprs[guard]
        if record.op == "and" and known.id in record.args:
            return next(arg for arg in record.args if arg != known.id)
        return guard
