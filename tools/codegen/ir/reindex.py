"""Expressions at other positions: a slice, a gather or a piece of a concatenation is the same formula, read elsewhere.

Where the tensors of an expression are read along an atom, `reindexed` reads them at a position that is itself an expression.
"""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import Expr, Fold, LoweringError
from tools.codegen.ir.modular import remainder
from tools.codegen.ir.settled import YES, settled

MOST_REMADE = 2000
"""Expressions of a region that are made once more at another position. Steps over a grid that read one another's neighbours have four or
five times as many with each, so that four of them in one region took minutes to write and would be slower than four kernels."""

Positions = Mapping[int, Value]
"""By leaf atom, the position at which it is taken."""


def reindexed(b: Builder, value: Value, at: Positions, guard: Value | None = None) -> Value:
    """Take a value at other positions; where `guard` is false nothing is read, and what comes of it is not used."""
    return Value(b, _Reindexing(b, at, guard).of(value.id)) if at else value


def flat(b: Builder, atoms: tuple[int, ...], at: Positions | None = None) -> Value:
    """Position along atoms that make one dimension, flattened in their order."""
    total: Value | None = None
    run: tuple[int, ...] = ()
    for atom in b.atoms.leaves(atoms):
        if at and atom in at:
            total, run = _append(b, _with_run(b, total, run), at[atom], (atom,)), ()
        else:
            run = (*run, atom)
    return _with_run(b, total, run) or b.const(0)


def spread(b: Builder, atoms: tuple[int, ...], position: Value) -> dict[int, Value]:
    """Take a position along a dimension apart into one for each of its leaf atoms."""
    leaves, found = b.atoms.leaves(atoms), dict[int, Value]()
    for atom in reversed(leaves[1:]):
        size = extent(b, (atom,))
        found[atom] = b.call("mod", position, size)
        position = b.call("floordiv", position, size)
    return found | ({leaves[0]: position} if leaves else {})


def least(dtype: str) -> int:
    """Read the least whole number of a dtype."""
    return -(2**31) if dtype == "int32" else -(2**63)


def extent(b: Builder, atoms: tuple[int, ...]) -> Value:
    """Write the number of positions along atoms, as a number: they need not be walked by the kernel."""
    return b.number(b.count(atoms))


def _with_run(b: Builder, total: Value | None, run: tuple[int, ...]) -> Value | None:
    return _append(b, total, b.index(run), run) if run else total


def _append(b: Builder, total: Value | None, position: Value, atoms: tuple[int, ...]) -> Value:
    return position if total is None else total * extent(b, atoms) + position


class _Reindexing:
    """Rewrites expressions, equal ones once."""

    def __init__(self, b: Builder, at: Positions, guard: Value | None) -> None:
        self.b, self.at, self.guard = b, dict(at), guard
        self.done: dict[int, int] = {}

    def of(self, expr: int) -> int:
        """Rewrite one expression."""
        if expr not in self.done:
            record = self.b.exprs[expr]
            untouched = self.at.keys().isdisjoint(self.b.atoms.leaves(record.atoms))
            self.done[expr] = expr if untouched else self._rewritten(record)
        return self.done[expr]

    def _rewritten(self, record: Expr) -> int:
        b = self.b
        b.remade += 1
        if b.remade > MOST_REMADE:
            raise LoweringError(f"more than {MOST_REMADE} values would be made again at other positions")
        if record.op == "load":
            load = b.loads[record.extra]
            read = b.read(record.extra, tuple(flat(b, dim, self.at) for dim in load.dims), _asked(b, self.guard))
            b.label(read, f"{load.ref.name}_at")
            return read.id
        if record.op == "read":
            place, guarded = record.extra
            args = [Value(b, self.of(arg)) for arg in record.args]
            own = args.pop() if guarded else None
            both = self.guard if own is None else own if self.guard is None else b.call("and", own, self.guard)
            read = b.read(place, tuple(args), _asked(b, both))
            b.label(read, f"{b.loads[place].ref.name}_at")
            return read.id
        if record.op == "index":
            return flat(b, record.extra, self.at).id
        if record.op == "scan" and self.at.keys() & {*b.atoms.leaves(record.along)}:
            raise LoweringError("a part of a scan of the same region is not generated")
        along = {"reduce": self._reduced, "order": self._ordered, "scan": self._scanned}.get(record.op)
        if along is not None:
            return along(record)
        if record.op in ("pick", "join") or not record.args:
            raise LoweringError(f"a part of a {record.op} of the same region is not generated")
        return self._settled(record, tuple(self.of(arg) for arg in record.args))

    def _settled(self, record: Expr, args: tuple[int, ...]) -> int:
        """Apply a map; a choice that is the same at every position is made here."""
        b = self.b
        if (found := settled(b, record.op, args, record.dtype)) is not None:
            return found.id
        if record.op == "mod" and (rest := remainder(b, *(Value(b, arg) for arg in args))) is not None:
            return rest.id
        return b.apply(record, args).id

    def _ordered(self, record: Expr) -> int:
        """Take what an order picked at other places of it: the one key of that place among all."""
        b, (bound, picked) = self.b, (record.along, record.extra[1])
        places = b.atoms.leaves((picked,))
        at = {atom: position for atom, position in self.at.items() if atom not in places and atom not in b.atoms.leaves(bound)}
        taken = {atom for position in at.values() for atom in b.leaves_of(b.exprs[position.id])}
        if taken & {*b.atoms.leaves(bound), *places}:
            raise LoweringError("rows in order of other rows of the same region are not generated")
        keys = b.order(Value(b, _Reindexing(b, at, self.guard).of(record.args[0])), bound, picked)
        if not set(places) & self.at.keys():
            return keys.id
        wanted = flat(b, places, self.at)
        if b.leaves_of(b.exprs[wanted.id]) & {*places}:
            raise LoweringError("rows in order at places of the same order are not generated")
        return b.reduce(Fold.MAX, b.call("where", b.call("eq", b.index(places), wanted), keys, least(record.dtype)), places).id

    def _scanned(self, record: Expr) -> int:
        """Take other rows of a scan."""
        b = self.b
        taken = {atom for position in self.at.values() for atom in b.leaves_of(b.exprs[position.id])}
        if taken & {*b.atoms.leaves(record.along)}:
            raise LoweringError("a scan of other rows by their own positions is not generated")
        return b.scan(record.kind, Value(b, self.of(record.args[0])), record.extra, record.backwards).id

    def _reduced(self, record: Expr) -> int:
        """Take a reduction at other positions: what it runs over stays, under atoms of its own where a position names the same."""
        b, bound = self.b, self.b.atoms.leaves(record.extra)
        at = {atom: position for atom, position in self.at.items() if atom not in bound}
        taken = {atom for position in at.values() for atom in b.leaves_of(b.exprs[position.id])}
        fresh = tuple(b.atoms.new(b.atoms.size(atom)) for atom in bound) if taken & set(bound) else bound
        if fresh != bound:
            at |= {old: b.index((new,)) for old, new in zip(bound, fresh, strict=True)}
        arg = _Reindexing(b, at, self.guard).of(record.args[0])
        return b.reduce(record.kind, Value(b, arg), fresh, skips_nan=record.skips_nan).id


def _asked(b: Builder, guard: Value | None) -> Value | None:
    """Leave out a guard that holds everywhere."""
    return None if guard is None or b.exprs[guard.id].extra == YES else guard
