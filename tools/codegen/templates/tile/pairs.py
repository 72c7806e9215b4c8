"""Neighbours in memory that a region reads apart, as gates and values that alternate: one wide read takes both, and a split parts them.

Read by themselves, each lane's elements of one kind lie twice as far apart as those that it stores: accesses are as narrow as an element.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.builder import Builder

Pair = tuple[int, int, tuple[int, ...]]
"""The reads of even and odd elements, and the atoms that count the pairs."""


def pairs(b: Builder, needed: Sequence[int]) -> dict[int, Pair]:
    """Find reads of one tensor that differ in their last position alone, which is twice a count, and that and one; by each of both."""
    found: dict[int, Pair] = {}
    known: dict[object, dict[int, int]] = {}
    for expr in needed:
        record = b.exprs[expr]
        if record.op != "read" or record.extra[1]:
            continue
        place = _doubled(b, record.args[-1])
        meta = b.loads[record.extra[0]].meta
        if place is None or not (meta.contiguous or meta.unit_last):
            continue
        atoms, odd = place
        if any(b.leaves_of(b.exprs[each]) & set(atoms) for each in record.args[:-1]):
            continue
        both = known.setdefault((record.extra[0], tuple(_alike(b, each) for each in record.args[:-1]), atoms), {})
        both.setdefault(odd, expr)
        if len(both) == 2:
            found |= dict.fromkeys(both.values(), (both[0], both[1], atoms))
    return found


def _doubled(b: Builder, expr: int) -> tuple[tuple[int, ...], int] | None:
    """Read a position that is twice a count, or that and one: the atoms of the count, and the one."""
    record, odd = b.exprs[expr], 0
    if record.op == "add" and b.exprs[record.args[1]].extra in (("int", "0"), ("int", "1")):
        record, odd = b.exprs[record.args[0]], int(b.exprs[record.args[1]].extra[1])
    if record.op != "mul" or b.exprs[record.args[1]].extra != ("int", "2") or b.exprs[record.args[0]].op != "index":
        return None
    return b.atoms.leaves(b.exprs[record.args[0]].extra), odd


def _alike(b: Builder, expr: int) -> object:
    """Name a position so that equal ones have one name."""
    record = b.exprs[expr]
    return b.atoms.leaves(record.extra) if record.op == "index" else expr
