"""Lower a region whose tensors are read at positions that are expressions, reduced over several sets of dimensions, or scattered to.

The same rules as everywhere, and those of `positions/`: views of what the region makes are seen through, one tensor may
be walked along two of its dimensions (a matrix and its transpose), and reductions need not agree. Only the template of tiles takes it.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from tools.codegen.ir.atoms import Dims, ShapeMismatchError
from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import Expr, Fold, LoweringError
from tools.codegen.ir.graph import Formula, LaidOut, Node, OperatorGraph, Ref
from tools.codegen.ir.kernel import Kernel, Lowered, Output, Scatter, Write
from tools.codegen.ir.operators.families import MOVING
from tools.codegen.ir.reindex import Positions, extent, flat, reindexed, spread
from tools.codegen.ir.settled import settled
from tools.codegen.ir.views import VIEWS, see_through
from tools.codegen.lower.region.flow import SEEN_THROUGH
from tools.codegen.lower.region.lowering import Lowering
from tools.codegen.lower.region.walked import refuse_twice

ViewRule = Callable[["GeneralLowering", Node, Lowered, int], Lowered]
"""Shows one result of a view that a reshape or a permutation is not: a slice, a piece, a window."""
GeneralRule = Callable[["GeneralLowering", Node], None]
"""Lowers one node; raises LoweringError with the reason where it cannot."""
Source = Callable[["GeneralLowering", Node], Lowered]
"""Writes what reads no tensor."""


MOST_TERMS = 4
"""Elements of a reduction that is written out, such as of coordinates: as a dimension of a tile it would be filled up to a power of two."""
MOST_CHOSEN = 64
"""Elements made in the region among which one at a position that is data is looked for."""
WRITTEN: Mapping[Fold, Callable[[Value, Value], Value]] = {
    Fold.SUM: operator.add,
    Fold.PROD: operator.mul,
    Fold.MAX: lambda one, other: one.builder.call("maximum", one, other),
    Fold.MIN: lambda one, other: one.builder.call("minimum", one, other),
}


class GeneralBuilder(Builder):
    """Reads an element by its position as any other read, and writes reductions of few elements out."""

    def call(self, op: str, *args: Value | bool | float) -> Value:
        """Apply a map; a choice that is the same at every position is made here."""
        values = [self.lift(arg) for arg in args]
        found = settled(self, op, tuple(value.id for value in values), self._result(op, values))
        return super().call(op, *values) if found is None else found

    def reduce(self, kind: Fold, value: Value, atoms: Iterable[int], *, skips_nan: bool = False) -> Value:
        """Reduce over `atoms`; one of few terms is written out, unless something else that it is made of runs along them."""
        chosen = self.atoms.leaves(tuple(atoms))
        sizes = [self.atoms.size(atom) for atom in chosen]
        fixed = all(len(set(each)) == 1 for each in sizes) and 1 < math.prod(each[0] for each in sizes) <= MOST_TERMS
        able = is_floating(value.dtype) or (kind in (Fold.MAX, Fold.MIN) and value.dtype != "bool")
        if kind not in WRITTEN or not fixed or not able or self._runs_along(value, set(chosen)):
            return super().reduce(kind, value, chosen, skips_nan=skips_nan)
        places = itertools.product(*(range(each[0]) for each in sizes))
        terms = [reindexed(self, value, dict(zip(chosen, map(self.const, place), strict=True))) for place in places]
        return functools.reduce(WRITTEN[kind], terms)

    def _runs_along(self, value: Value, chosen: set[int]) -> bool:
        """Whether a reduction, scan or order that a value is made of has some of these atoms."""
        records = [self.exprs[expr] for expr in self.made_of(value)]
        whole = [record for record in records if record.along]
        return any(chosen & (self.leaves_of(record) | {*self.atoms.leaves(record.along)}) for record in whole)

    def pick(self, value: Value, position: Value, atoms: Iterable[int]) -> Value | None:
        """The element at one position along `atoms`; what is outside of them is not read."""
        chosen = tuple(atoms)
        inside = self.call("and", position >= 0, position < extent(self, chosen))
        return reindexed(self, value, spread(self, chosen, position), inside)


class GeneralLowering(Lowering):
    """Turns nodes into expressions that read and write wherever they like."""

    builder = GeneralBuilder

    def __init__(
        self,
        graph: OperatorGraph,
        members: Iterable[str],
        rules: Mapping[str, GeneralRule],
        views: Mapping[str, ViewRule],
        sources: Mapping[str, Source],
        *,
        late: bool = False,
    ) -> None:
        """Take the names of the region's nodes, a rule for each operator, for each view, and for each operator without a tensor.

        With `late` it makes what is added to the region's results: the rest of long runs.
        """
        super().__init__(graph, members, {}, (), seen_through=SEEN_THROUGH | views.keys())
        self.general_rules = rules
        self.views, self.sources = views, sources
        self.late = late
        self.partial: set[str] = set()
        """Nodes whose results the region's first kernel leaves unfinished."""
        self.scattered: dict[Ref, tuple[Lowered, Scatter]] = {}
        self._walked: dict[int, frozenset[int]] = {}
        self.distinct: dict[int, int] = {}
        """Positions of which no two are alike along an atom, by expression."""

    def value(self, ref: Ref) -> Lowered:
        """Find a value: made here, a view of something, or read from memory; what is unfinished is not read here."""
        if ref.name in self.partial:
            raise LoweringError("what a later kernel adds to is not read in the same region")
        return super().value(ref)

    def take(self, found: Lowered, at: Positions, dims: Dims, guard: Value | None = None) -> Lowered:
        """Take a value at other positions, under the dimensions that these vary over."""
        return Lowered(reindexed(self.b, found.value, at, guard), self.b.atoms.resolve(dims))

    def gathered(self, found: Lowered, at: Positions, dims: Dims, guard: Value | None = None) -> Lowered:
        """The same at positions that are data, or at several: what a reduction of this region makes would be made again for each.

        Of few such elements the one at the position is found by looking at all of them.
        """
        named = {atom: position for atom, position in at.items() if self._is_walked(position)}
        moved = {atom: position for atom, position in at.items() if atom not in named}
        below = [self.b.exprs[expr] for expr in self._below(found.value.id)]
        if any(record.along and moved.keys() & self._fixed_of(record) for record in below):
            source = self.take(found, named, found.dims, guard) if named else found
            return Lowered(self._chosen(source.value, moved), self.b.atoms.resolve(dims))
        return self.take(found, at, dims, guard)

    def _is_walked(self, position: Value) -> bool:
        """Whether a position is that along another dimension as it stands: then each element is made once, too."""
        record = self.b.exprs[position.id]
        return record.op == "index" and len(self.b.atoms.leaves(record.extra)) == 1

    def _fixed_of(self, record: Expr) -> frozenset[int]:
        """Name the atoms along which what a reduction makes is not read elsewhere: of a scan those that it runs along, too."""
        return self.b.leaves_of(record) | (frozenset(self.b.atoms.leaves(record.along)) if record.is_scan else frozenset())

    def _chosen(self, value: Value, at: Positions) -> Value:
        """Sum what stands at the positions alone; raises LoweringError where that would be many, or positions run along the same."""
        b, atoms = self.b, tuple(at)
        taken = {atom for position in at.values() for atom in b.leaves_of(b.exprs[position.id])}
        if math.prod(b.count(atoms)[:1]) > MOST_CHOSEN or taken & at.keys() or value.dtype == "bool":
            raise LoweringError("what a reduction of the same region makes is not gathered from")
        hits = [b.call("eq", b.index((atom,)), position) for atom, position in at.items()]
        hit = functools.reduce(lambda one, other: b.call("and", one, other), hits)
        return b.reduce(Fold.SUM, b.call("where", hit, value, 0), atoms)

    def operands(self, refs: Sequence[Ref]) -> list[Lowered]:
        """Find values that will be broadcast against each other: `aligned` keeps them apart."""
        return [self.value(ref) for ref in refs]

    def aligned(self, operands: Sequence[Lowered]) -> tuple[list[Lowered], Dims]:
        """Broadcast values against each other; one whose dimensions would fall together is read under others."""
        dims: Dims = ()
        done: list[Lowered] = []
        for operand in operands:
            resolved = Lowered(operand.value, self.b.atoms.resolve(operand.dims))
            done.append(self._apart(resolved, done, dims))
            dims = self.b.atoms.broadcast(dims, done[-1].dims)
        return done, dims

    def unshared(self, operand: Lowered, dims: Dims) -> Lowered:
        """Read a value under atoms of its own where it shares some with `dims`, whose neighbour it will be."""
        own = self.b.atoms.resolve(operand.dims)
        if not {atom for dim in own for atom in dim} & {atom for dim in self.b.atoms.resolve(dims) for atom in dim}:
            return Lowered(operand.value, own)
        return self._moved(operand, tuple(self._fresh(dim) for dim in own))

    def unite(self, one: Lowered, other: Lowered, places: Iterable[int]) -> None:
        """Walk dimensions of two values together where they are as long and nothing is walked along both."""
        for place in places:
            mine, theirs = (self.b.atoms.leaves(each.dims[place]) for each in (one, other))
            if min(len(mine), len(theirs)) != 1 or mine == theirs or self.b.count(mine) != self.b.count(theirs):
                continue
            both = self.b.atoms.leaves([atom for each in (one, other) for dim in each.dims for atom in dim])
            below = [self._atoms_below([each]) for each in (one, other)]
            crossing = any({*mine} & own and {*theirs} & own for own in map(self.b.leaves_of, self.b.exprs))
            if not crossing and len({*both}) == len(both) and below[0].isdisjoint(theirs) and below[1].isdisjoint(mine):
                self.b.atoms.unify(mine, theirs)

    def _fresh(self, dim: tuple[int, ...]) -> tuple[int, ...]:
        return (self.b.atoms.new(self.b.count(dim)),) if dim else ()

    def _moved(self, operand: Lowered, dims: Dims) -> Lowered:
        """Read a value along other atoms of the same sizes."""
        at: dict[int, Value] = {}
        for old, new in zip(operand.dims, dims, strict=True):
            if old and old != new:
                at |= spread(self.b, old, flat(self.b, new))
        return self.take(operand, at, dims)

    def _apart(self, operand: Lowered, others: Sequence[Lowered], dims: Dims) -> Lowered:
        padded = ((),) * (len(operand.dims) - len(dims)) + dims
        before = padded[len(padded) - len(operand.dims) :]
        if not self._collide(operand, others, before, dims):
            return operand
        return self._moved(operand, tuple(old and (new or self._fresh(old)) for old, new in zip(operand.dims, before, strict=True)))

    def _collide(self, operand: Lowered, others: Sequence[Lowered], before: Dims, dims: Dims) -> bool:
        """Whether walking two values together would walk one tensor along two of its dimensions at once."""
        for old, new in zip(operand.dims, before, strict=True):
            elsewhere = {atom for dim in dims if dim is not new for atom in dim}
            if set(old) & elsewhere:
                return True
            differs = old and new and old != new
            if differs and (set(new) & self._atoms_below([operand]) or set(old) & self._atoms_below(others)):
                return True
        return False

    def _atoms_below(self, found: Sequence[Lowered]) -> frozenset[int]:
        """Name every atom that something in the formulas of values is walked along, reductions' own included."""
        return frozenset(self.b.atoms.leaves(frozenset[int]().union(*(self._walked_below(each.value.id) for each in found))))

    def _walked_below(self, expr: int) -> frozenset[int]:
        """The same of one expression, as its atoms were named when it was made: each step of a long chain asks for all before it."""
        for place in sorted(self._below_unknown(expr)):
            record = self.b.exprs[place]
            own = frozenset([*record.atoms, *record.along])
            self._walked[place] = own.union(*(self._walked[arg] for arg in record.args))
        return self._walked[expr]

    def _below_unknown(self, expr: int) -> set[int]:
        stack, found = [expr], set[int]()
        while stack:
            place = stack.pop()
            if place not in found and place not in self._walked:
                found.add(place)
                stack += self.b.exprs[place].args
        return found

    def reduces_over(self, value: Value) -> int:
        """Count the elements of the longest reduction that a value is made of; one where there is none."""
        along = [self.b.exprs[expr].along for expr in self._below(value.id)]
        return max((self.b.count(each)[0] for each in along if each), default=1)

    def _below(self, expr: int) -> set[int]:
        stack, found = [expr], set[int]()
        while stack:
            place = stack.pop()
            if place not in found:
                found.add(place)
                stack += self.b.exprs[place].args
        return found

    def _through(self, node: Node, ref: Ref) -> Lowered:
        """See through a view, whatever it is of; one of several results of a node is another view each."""
        if node.op in self.sources:
            return self.sources[node.op](self, node)
        if isinstance(node, Formula):
            self._lower(node)
            return self.known[ref]
        source = node.args[0] if node.args else None
        if not isinstance(source, Ref) or (node.op not in self.views and node.op not in VIEWS):
            return super()._through(node, ref)
        base = self.value(source)
        if node.op in self.views:
            return self.views[node.op](self, node, base, ref.index)
        try:
            return Lowered(base.value, see_through(self.b.atoms, node, base.dims))
        except ShapeMismatchError:
            return self._refolded(node, base)

    def _refolded(self, node: Node, base: Lowered) -> Lowered:
        """Reshape dimensions that have no common split: elements are counted."""
        dims = self.b.atoms.dims(node.outputs[0].shape)
        whole = tuple(atom for dim in self.b.atoms.resolve(base.dims) for atom in dim)
        return self.take(base, spread(self.b, whole, flat(self.b, tuple(atom for dim in dims for atom in dim))), dims)

    def _lower(self, node: Node) -> None:
        if isinstance(node, LaidOut) and node.op in MOVING:
            # its rule makes what the reference knows; it is laid out where it is recorded
            node = Node(node.name, node.target, node.args, node.kwargs, (node.result, *node.outputs[1:]))
        self.apply(self.general_rules[node.op], node)

    def define(self, node: Node, value: Value, dims: Dims, index: int = 0) -> None:
        """Record a member's result as it will lie."""
        made = self.graph.by_name[node.name]
        super().define(made if isinstance(made, LaidOut) else node, value, dims, index)

    def scatter(self, node: Node, source: Lowered, target: Scatter, index: int = 0) -> None:
        """Record a member's result as values that are written to positions of a copy of another tensor."""
        self.scattered[Ref(node.name, index)] = (source, target)
        self.b.label(source.value, f"{node.name}_value")

    def continued(self, node: Node, base: Ref, positions: tuple[int, ...], write: Write) -> Scatter:
        """Say where values go that a member adds to what another one added to: to the same memory, as no order of these matters."""
        users = self.graph.users.get(base.name, ())
        if base not in self.scattered or base in self.graph.returned or [*users] != [node]:
            raise LoweringError(f"{node.target} to what the same region makes is not generated: it must be in memory")
        source, before = self.scattered[base]
        if write is Write.STORE or before.write is not write or before.in_place or before.guard is not None:
            raise LoweringError(f"{node.target} to what the same region writes otherwise is not generated: it must be in memory")
        self.scattered[base] = source, replace(before, base=None, fill=0.0, onto=Ref(node.name))
        return replace(before, positions=positions)

    def _written(self) -> Sequence[Ref]:
        """List what leaves the region, and what is added to the memory of that on the way."""
        found = list(super()._written())
        for ref in found:
            found += [each for each, (_, target) in self.scattered.items() if target.onto == ref]
        return found

    def _output(self, ref: Ref) -> Output:
        if ref not in self.scattered:
            return super()._output(ref)
        source, target = self.scattered[ref]
        dims = self.b.atoms.resolve(source.dims)
        if target.onto is not None:
            last = self._output(target.onto)
            if {*self.b.atoms.leaves(sum(dims, ()))} != {*self.b.atoms.leaves(sum(last.dims, ()))}:
                raise LoweringError("what is added to one tensor runs along other dimensions")
            target = replace(target, onto=last.scatter.onto or last.ref if last.scatter else last.ref)
        return Output(ref, self.graph.meta(ref), source.value.id, dims, target)

    def _finish(self) -> Kernel:
        outputs = super()._finish().outputs
        if self.late:
            outputs = tuple(output for output in outputs if output.scatter and output.scatter.in_place)
        return Kernel(self.b, outputs, (), general=True)

    def _common_reduction(self) -> tuple[int, ...]:
        return ()

    def _check_loads(self, outputs: Sequence[Output]) -> None:
        """Loads that are only read at positions are not walked: `aligned` keeps the others apart."""
        exprs = [self.b.exprs[expr] for expr in self._every(outputs)]
        for dims in (*(output.dims for output in outputs), *(self.b.loads[expr.extra].dims for expr in exprs if expr.op == "load")):
            refuse_twice(self.b.atoms.resolve(dims))

    def _every(self, outputs: Sequence[Output]) -> set[int]:
        return set().union(*(self._below(output.expr) for output in outputs))

    @cached_property
    def traces(self) -> int:
        """Sizes at which the reference was traced."""
        return self.graph.traces
