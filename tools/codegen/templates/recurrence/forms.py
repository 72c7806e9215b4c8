"""What a loop's step is, seen by its expressions: linear in what it carries, or an outer product added to a matrix that queries read.

Nothing is told by an operator's name: a step is taken apart into `after = factor * before + added`, where neither is made of what is
carried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import Fold
from tools.codegen.ir.kernel import Kernel, Recurrence, State
from tools.codegen.ir.values.reach import made_of
from tools.codegen.templates.recurrence.layout import recurrence_layout_of
from tools.codegen.templates.shared.layout_cache import kept


@dataclass(frozen=True)
class LinearState:
    """A state whose next value is a factor times it, and something added."""

    state: State
    factor: int
    added: int


@dataclass(frozen=True)
class MatrixForm:
    """A matrix that decays, has an outer product added at each step, and is then multiplied by queries."""

    state: State
    factor: int
    """The decay, one number for a whole matrix."""
    keys: tuple[int, ...]
    """What the outer product has along the summed dimension, to be multiplied."""
    values: tuple[int, ...]
    """And along the other one."""
    reads: dict[int, tuple[int, ...]]
    """Sums of queries times the state, by their expressions: the queries, to be multiplied."""


def _scan_form(kernel: Kernel) -> tuple[LinearState, ...]:
    """Take every state apart, each after those that it is made of; nothing where a step is not linear element by element."""
    recurrence, builder = kernel.recurrence, kernel.builder
    if recurrence is None or recurrence_layout_of(kernel).held:
        return ()
    found: list[LinearState] = []
    rest = list(recurrence.states)
    while rest:
        given = frozenset(one.state.after for one in found)
        ready = ((state, linear(builder, state.after, state.leaf, given)) for state in rest)
        one = next(((state, parts) for state, parts in ready if parts is not None), None)
        if one is None:
            return ()
        found.append(LinearState(one[0], *one[1]))
        rest.remove(one[0])
    given = frozenset(state.after for state in recurrence.states)
    leaves = {state.leaf for state in recurrence.states}
    outputs = [output.expr for output in kernel.outputs]
    return () if not found or any(leaves & set(_reach(builder, expr, given)) for expr in outputs) else tuple(found)


def _matrix_form(kernel: Kernel) -> MatrixForm | None:
    """Find a matrix that queries read; none where a step is otherwise."""
    recurrence, builder = kernel.recurrence, kernel.builder
    layout = recurrence_layout_of(kernel)
    names = [axis.name for axis in layout.axes]
    if recurrence is None or len(layout.held) != 1 or len(recurrence.states) != 1 or "rows" not in names:
        return None
    state = recurrence.states[0]
    inner, wide = (next(axis.atoms for axis in layout.axes if axis.name == name) for name in ("held_0", "rows"))

    def over(expr: int) -> tuple[bool, bool]:
        atoms = set(builder.atoms.leaves(tuple(builder.exprs[expr].atoms)))
        return bool(atoms & set(inner)), bool(atoms & set(wide))

    parts = linear(builder, state.after, state.leaf, frozenset())
    if parts is None or over(state.leaf) != (True, True) or over(parts[0]) != (False, False):
        return None
    factors = list(_factors(builder, parts[1]))
    if any(over(factor) == (True, True) for factor in factors):
        return None
    reads = _reads(kernel, recurrence, state, inner)
    if not reads or any(over(query)[1] for queries in reads.values() for query in queries):
        return None
    keys = tuple(factor for factor in factors if not over(factor)[1])
    return MatrixForm(state, parts[0], keys, tuple(factor for factor in factors if over(factor)[1]), reads)


def _reads(kernel: Kernel, recurrence: Recurrence, state: State, inner: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """List the sums of queries times the state; none where the state is read otherwise, or before the step's own product is added."""
    builder, found = kernel.builder, dict[int, tuple[int, ...]]()
    for place in made_of(builder, *(output.expr for output in kernel.outputs)):
        expr = builder.exprs[place]
        if expr.reduces(Fold.SUM) and builder.atoms.leaves(expr.extra) == inner:
            factors = list(_factors(builder, expr.args[0], frozenset({state.after})))
            others = tuple(factor for factor in factors if factor != state.after)
            if len(others) == len(factors) - 1 and not any(state.leaf in made_of(builder, other) for other in others):
                found[place] = others
    left = [output.expr for output in kernel.outputs]
    reached = {place for expr in left for place in _reach(builder, expr, frozenset(found))}
    return {} if reached & {state.leaf, state.after} else found


def linear(builder: Builder, expr: int, leaf: int, given: frozenset[int]) -> tuple[int, int] | None:
    """Take an expression apart: factor and what is added, neither made of any state but of `given`; none where it is not linear."""
    parts = _linear(builder, expr, leaf, given)
    if parts is None:
        return None
    factor, added = (builder.lift(0.0) if part is None else part for part in parts)
    for part in (factor, added):
        if any(builder.exprs[each].op == "state" for each in _reach(builder, part.id, given)):
            return None
    return factor.id, added.id


def _linear(builder: Builder, expr: int, leaf: int, given: frozenset[int]) -> tuple[Value | None, Value | None] | None:
    expr = _unturned(builder, expr)
    record, value = builder.exprs[expr], Value(builder, expr)
    if expr == leaf:
        return builder.lift(1.0), None
    if expr in given or leaf not in _reach(builder, expr, given):
        return None, value
    if record.op == "cast" and record.extra == "float32":
        return _linear(builder, record.args[0], leaf, given)
    if record.op == "where" and leaf not in _reach(builder, record.args[0], given):
        sides = [_linear(builder, arg, leaf, given) for arg in record.args[1:]]
        return None if None in sides else _chosen(builder, Value(builder, record.args[0]), [side for side in sides if side])
    if record.op not in ("add", "sub", "mul", "div", "neg"):
        return None
    sides = [_linear(builder, arg, leaf, given) for arg in record.args]
    known = [side for side in sides if side is not None]
    return _joined(builder, record.op, known) if len(known) == len(sides) else None


def _joined(builder: Builder, op: str, sides: list[tuple[Value | None, Value | None]]) -> tuple[Value | None, Value | None] | None:
    """Apply an operator to sides that are taken apart."""
    if op == "neg":
        one, two = (None if part is None else -part for part in sides[0])
        return one, two
    if op in ("add", "sub"):
        one, two = (_sum(builder, op, *pair) for pair in zip(*sides, strict=True))
        return one, two
    left, right = sides
    if right[0] is not None and (op == "div" or left[0] is not None):
        return None
    whole, other = (left, right[1]) if right[0] is None else (right, left[1])
    assert other is not None
    one, two = (None if part is None else _scaled(builder, op, part, other) for part in whole)
    return one, two


def _scaled(builder: Builder, op: str, part: Value, by: Value) -> Value:
    return by if op == "mul" and part == builder.lift(1.0) else builder.call(op, part, by)


def _sum(builder: Builder, op: str, left: Value | None, right: Value | None) -> Value | None:
    if right is None:
        return left
    if left is None:
        return right if op == "add" else -right
    return builder.call(op, left, right)


def _chosen(builder: Builder, condition: Value, sides: list[tuple[Value | None, Value | None]]) -> tuple[Value | None, Value | None]:
    def choose(one: Value | None, two: Value | None) -> Value | None:
        return None if one is two is None else builder.call("where", condition, 0.0 if one is None else one, 0.0 if two is None else two)

    return choose(sides[0][0], sides[1][0]), choose(sides[0][1], sides[1][1])


def _factors(builder: Builder, expr: int, whole: frozenset[int] = frozenset()) -> Iterator[int]:
    """Yield what is multiplied with one another in an expression; those of `whole` are not taken apart."""
    expr = _unturned(builder, expr)
    record = builder.exprs[expr]
    if record.op == "mul" and expr not in whole:
        for arg in record.args:
            yield from _factors(builder, arg, whole)
    else:
        yield expr


def _unturned(builder: Builder, expr: int) -> int:
    """See through a turn between what has become one dimension."""
    record = builder.exprs[expr]
    while record.op == "turn" and len({builder.atoms.leaves((atom,)) for atom in record.extra}) == 1:
        expr = record.args[0]
        record = builder.exprs[expr]
    return expr


def _reach(builder: Builder, expr: int, stops: frozenset[int]) -> Iterator[int]:
    """Yield what an expression is made of, no further than at `stops`, which are yielded."""
    stack, seen = [expr], set[int]()
    while stack:
        place = stack.pop()
        if place not in seen:
            seen.add(place)
            yield place
            stack += () if place in stops else builder.exprs[place].args


scan_form_of = kept(_scan_form)
"""The scan that a loop is, taken apart once; empty where it is none."""
matrix_form_of = kept(_matrix_form)
"""The matrix that a loop carries, taken apart once."""
