"""The reductions of a tile kernel: held whole, stepped along, or shared by several programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.templates.shared.body import ATOM
from tools.codegen.templates.shared.frame import neutral, vanishes
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.shared.reductions import joined_text, reduction_text
from tools.codegen.templates.shared.scans import scan_text
from tools.codegen.templates.tile.axes import TileAxes, positions
from tools.codegen.templates.tile.body import TileBody
from tools.codegen.templates.tile.layout import TileLayout
from tools.codegen.templates.tile.merged import factor_of, measures_distance, say_shift, total_beside
from tools.codegen.templates.tile.orders import is_spread, order_text
from tools.codegen.templates.tile.rare import skipped_by

Say = Callable[[Scope], None]
MOST = 2**31 - 1
LOWEST = neutral(Fold.MAX, "float32")


class Folds:
    """Writes the reductions of one kernel."""

    def __init__(self, plan: TileLayout, axes: TileAxes, body: TileBody, wide: str, buffers: dict[int, str], apart: frozenset[int]) -> None:
        """Take the layout, the kernel's axes and its formulas, and the buffers of partial results that the kernels before it fill.

        Elements of reductions `apart` are added up by themselves in a loop, of others those that the tile holds together in each step.
        """
        self.plan, self.axes, self.body, self.wide, self.b, self.apart = plan, axes, body, wide, body.b, apart
        self.buffers = buffers
        """By reduction."""
        for name in buffers.values():
            self.body.names.fresh(name)

    def held(self, scope: Scope, expr: int) -> str:
        """Write a reduction over axes that the tile holds whole."""
        axis = self.axes.stepped
        if axis and self.plan.bounds[expr] & set(axis.atoms):
            raise AssertionError("a reduction along the axis that is stepped along is made before it is read")
        if self.b.exprs[expr].op == "order":
            masked, over, spread = self._masked(scope, expr), self._over(expr), is_spread(self.b, self.plan.needed, expr)
            return self.body.bind(scope, expr, order_text(self.axes, self.body, scope, expr, masked, over, spread=spread))
        if self.b.exprs[expr].is_scan:
            return self.body.bind(scope, expr, self._scanned(scope, expr))
        return self.body.bind(scope, expr, self._counted(scope, expr) or self._folded(expr, self._masked(scope, expr), self._over(expr)))

    def _counted(self, scope: Scope, expr: int) -> str:
        """Write how often something holds in a tile, which 32 bits count; nothing of other reductions."""
        (arg,), over = self.b.exprs[expr].args, self._over(expr)
        if not self._is_count(expr):
            return ""
        text, rank = self.body.text(scope, arg)
        holds = " & ".join([*(self.axes.mask(axis) for axis in over), text if rank == ATOM else f"({text})"])
        return f"{self._folded(expr, f'tl.where({holds}, 1, 0)', over)}.to(tl.int64)"

    def load_first(self, scope: Scope) -> None:
        """Write every read that waits for no reduction before the first of them: what waits at a barrier has its data on the way."""
        if self.plan.reductions:
            self._read_all(scope, self.plan.needed, frozenset())

    def walk(self, scope: Scope, level: Sequence[int], begin: str = "0", stop: str = "", then: Say | None = None) -> None:
        """Write one loop that makes the reductions of a level, and what is said of each step besides."""
        axis = self._stepped
        self._read_all(scope, self._below(level), frozenset(axis.atoms))
        lanes = {expr: self.body.names.fresh(f"{self.body.name_of(expr)}_lanes") for expr in level}
        for expr, name in lanes.items():
            record, last = self.b.exprs[expr], self._last(expr)
            full = [each for each in self.axes.shaped if each in last or set(each.atoms) & self.b.leaves_of(record)]
            dtype = "int32" if self._is_count(expr) else record.dtype
            scope.say(f"{name} = tl.full({self.axes.shape(full)}, {neutral(record.kind, dtype)}, tl.{dtype})")
        inner = self.loop(scope)
        held = self._where_it_holds(inner, skipped_by(self.b, level))
        for expr, name in lanes.items():
            if expr in self.plan.merged:
                continue
            others = [each for each in self._over(expr) if each not in self._last(expr)]
            text = self._folded(expr, self._masked(held, expr, short=True), others)
            if sums := {total: lanes[total] for total in lanes if self.plan.merged.get(total) == expr}:
                self._rescale(held, expr, name, text, sums)
            else:
                held.say(f"{name} = {joined_text(self.body, self.b.exprs[expr], name, text)}")
        if then:
            then(inner)
        self.close(scope, inner, begin, stop)
        for expr, name in lanes.items():
            if expr not in self.plan.merged:
                total = f"{name}.to(tl.int64)" if self._is_count(expr) else name
                self.body.bind(scope, expr, self._folded(expr, total, self._last(expr)))
        for expr in lanes:
            if expr in self.plan.merged:
                self.body.bind(scope, expr, self._folded(expr, self._relative(scope, expr, lanes.__getitem__), [axis]))

    def ends(self, scope: Scope) -> tuple[str, str]:
        """Say where a walk begins and stops: where the runs of a tile's rows do, which lie one behind the other, or with the axis."""
        if self.plan.spanned is None:
            return "0", ""
        (span,) = (self.b.spans[atom] for atom in self._stepped.atoms)
        begin, stop = (self.body.assign(scope, expr) for expr in (span.begin, span.stop))
        inside = self.body.mask(scope, self.b.leaves_of(self.b.exprs[span.begin]) | self.b.leaves_of(self.b.exprs[span.stop]))
        scope.say(f"has_run = {inside} & ({begin} < {stop})")
        scope.say(f"begin = tl.min(tl.where(has_run, {begin}, {MOST}))")
        scope.say(f"stop = tl.max(tl.where(has_run, {stop}, 0))")
        return "begin", "stop"

    def _last(self, expr: int) -> list[Axis]:
        """List the axes along which a reduction's lanes are put together after its loop; one that follows its largest element has one."""
        if expr not in self.apart or expr in (*self.plan.merged, *self.plan.merged.values()):
            return [self._stepped]
        return self._over(expr)

    def _is_count(self, expr: int) -> bool:
        """Whether a reduction counts how often something holds: 32 bits count it for each lane of a walk."""
        record = self.b.exprs[expr]
        return record.kind is Fold.SUM and self.b.exprs[record.args[0]].dtype == "bool"

    def _rescale(self, scope: Scope, peak: int, largest: str, x: str, sums: Mapping[int, str]) -> None:
        """Write a step by which lanes' largest elements grow, and the sums of exponentials relative to them.

        Of an element and what was the largest before, the larger has an exponential of one, so that one is made a step. A lane that met
        no number counts its elements: it is relative to minus infinity, and adds nothing to the others.
        """
        fresh = self.body.names.fresh
        element, gap, weight, grows = fresh("element"), fresh("gap"), fresh("weight"), fresh("grows")
        scope.say(f"{element} = {x}")
        scope.say(f"{gap} = tl.where({element} == {largest}, 0.0, -tl.abs({element} - {largest}))")
        scope.say(f"{weight} = tl.exp({gap})")
        scope.say(f"{grows} = {element} > {largest}")
        for total, name in sums.items():
            if measures_distance(self.b, total):
                beside = total_beside(self.b, total, sums)
                assert beside is not None
                moved = f"tl.where({largest} == {LOWEST}, {name}, ({name} + {sums[beside]} * {gap}) * {weight})"
                inside = " & ".join(self.axes.mask(axis) for axis in self._over(total))
                added = f"{name} + tl.where({inside}, {weight} * ({element} - {largest}), 0.0)"
                scope.say(f"{name} = tl.where({grows}, {moved}, {added})")
        scope.say(f"{largest} = {joined_text(self.body, self.b.exprs[peak], largest, element)}")
        for total, name in sums.items():
            if not measures_distance(self.b, total):
                times = self._factor(scope, total)
                scope.say(f"{name} = tl.where({grows}, {name} * {weight} + {times or '1.0'}, {name} + {weight}{times and f' * {times}'})")

    def _factor(self, scope: Scope, total: int) -> str:
        """Name what a sum multiplies its exponentials by, zero beyond the end; nothing where it is of exponentials alone."""
        factor, axes = factor_of(self.b, total), self._over(total)
        if factor is None:
            return ""
        text = self.body.assign(scope, factor)
        if vanishes(self.b, factor, self.plan.bounds[total]):
            return text
        times = self.body.names.fresh("factor")
        scope.say(f"{times} = tl.where({' & '.join(self.axes.mask(axis) for axis in axes)}, {text}, 0.0)")
        return times

    def _relative(self, scope: Scope, expr: int, lanes: Callable[[int], str]) -> str:
        """Write sums that are relative to several elements as relative to the largest of all, which is known."""
        found, largest = scope.find(self.plan.merged[expr]), lanes(self.plan.merged[expr])
        assert found is not None
        shift, sums = say_shift(self.b, scope, expr, self.body.names.fresh("shift"), found), lanes(expr)
        if measures_distance(self.b, expr):
            total = total_beside(self.b, expr, self.plan.merged)
            assert total is not None
            sums = f"({sums} + tl.where({largest} == {LOWEST}, 0.0, {lanes(total)} * ({largest} - {shift})))"
        return f"{sums} * tl.exp({largest} - {shift})"

    def _where_it_holds(self, scope: Scope, condition: int | None) -> Scope:
        """Open a block for what changes nothing where a condition holds nowhere in a tile."""
        if condition is None:
            return scope
        scope.say(f"if tl.max({self.body.assign(scope, condition)}.to(tl.int32)) > 0:")
        return scope.nested()

    def loop(self, scope: Scope) -> Scope:
        """Begin the body of a loop; what it begins with is known once it is written."""
        return scope.nested([])

    def close(self, scope: Scope, inner: Scope, begin: str = "0", stop: str = "") -> None:
        """Write a loop around the body."""
        axis = self._stepped
        scope.say(f"for start in range({begin}, {stop or self.body.space.monomial(axis.atoms)}, {self.axes.block(axis)}):")
        top = positions(self.axes, self.body.space, axis, "start + ", self.wide, stop if self.plan.spanned is not None else "")
        scope.lines += [*(inner.indent + line for line in top), *inner.lines]

    def begin(self, scope: Scope) -> None:
        """Write the reads that are the same all along a chunk, and where it begins and stops."""
        self._read_all(scope, self.plan.needed, frozenset(self._stepped.atoms))
        self.chunk(scope)

    def chunk(self, scope: Scope) -> None:
        """Write where a program's chunk begins and stops."""
        scope.say("begin = split * chunk")
        scope.say(f"stop = tl.minimum(begin + chunk, {self.body.space.monomial(self._stepped.atoms)})")

    def partial(self, scope: Scope, before: int, then: Say | None = None) -> None:
        """Write the reductions of one chunk that wait for `before` others, and where they go, with what is said of each step besides."""
        level = self.levels[before]
        if before:
            self.combine(scope, before)
        self.chunk(scope)
        self.walk(scope, level, "begin", "stop", then)
        for expr in level:
            atoms = self.b.leaves_of(self.b.exprs[expr])
            mask = self.body.mask(scope, atoms)
            target = f"{self._buffer(expr)}_ptr + split * {self._total(expr)}{self._kept(expr)}{self.axes.lifted(atoms)}"
            scope.say(f"tl.store({target}, {scope.find(expr)}{f', mask={mask}' if mask else ''})")

    def combine(self, scope: Scope, count: int) -> None:
        """Write the reductions of the first levels from their partial results."""
        axis = self._stepped
        scope.say(f"part = tl.arange(0, SPLITS){self.axes.spread(axis)}")
        for expr in (expr for level in self.levels[:count] for expr in level):
            merged = expr in self.plan.merged
            load = self._relative(scope, expr, lambda each: self._parts(scope, each)) if merged else self._parts(scope, expr)
            self.body.bind(scope, expr, self._folded(expr, load, [axis]))

    def _parts(self, scope: Scope, expr: int) -> str:
        """Write the read of a reduction's partial results."""
        record = self.b.exprs[expr]
        mask = " & ".join(filter(None, ["(part < n_splits)", self.body.mask(scope, self.b.leaves_of(record))]))
        address = f"{self._buffer(expr)}_ptr + part * {self._total(expr)}{self._kept(expr)}"
        return f"tl.load({address}, mask={mask}, other={neutral(record.kind, record.dtype)})"

    @property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """List the reductions along the axis that is stepped along, those that wait for none first."""
        return () if self.axes.loop is None else self.plan.levels[self.axes.loop]

    @property
    def _stepped(self) -> Axis:
        assert self.axes.stepped is not None
        return self.axes.stepped

    def _buffer(self, expr: int) -> str:
        if expr not in self.buffers:
            self.buffers[expr] = self.body.names.fresh(f"{self.body.name_of(expr)}_parts")
        return self.buffers[expr]

    def varying(self, expr: int) -> list[Axis]:
        """List the axes that the results of a reduction have."""
        own = self.b.leaves_of(self.b.exprs[expr])
        return [axis for axis in self.axes.every if axis is not self._stepped and set(axis.atoms) & own]

    def _total(self, expr: int) -> str:
        """Write how many results a reduction has."""
        sizes = [self.body.space.monomial(axis.atoms) for axis in self.varying(expr)]
        return sizes[0] if len(sizes) == 1 else f"({' * '.join(sizes)})" if sizes else "1"

    def _kept(self, expr: int) -> str:
        text = ""
        for axis in self.varying(expr):
            text = f"({text}) * {self.body.space.monomial(axis.atoms)} + {axis.index}" if text else axis.index
        return f" + {text}" if text else ""

    def _below(self, level: Sequence[int]) -> list[int]:
        return sorted(self.b.behind(arg for expr in level for arg in self.b.exprs[expr].args))

    def _read_all(self, scope: Scope, exprs: Sequence[int], inside: frozenset[int]) -> None:
        """Write the reads among expressions that wait for no reduction and do not vary over `inside`.

        What is made of tensors that meet Triton 3.6 lays as the last one that is read: with a vector of 2048 behind 8 columns of a
        matrix all of the matrix went through shared memory, in 36 barriers (sm_90).
        """
        waits, found = dict[int, bool](), list[int]()
        for expr in sorted(exprs):
            record = self.b.exprs[expr]
            waits[expr] = bool(record.along) or any(waits.get(arg, False) for arg in record.args)
            if record.op in ("load", "read") and not waits[expr] and not self.b.leaves_of(record) & inside:
                found.append(expr)
        for expr in sorted(found, key=lambda expr: sum(bool(set(axis.atoms) & self.plan.leaves[expr]) for axis in self.axes.shaped)):
            self.body.assign(scope, expr)

    def _masked(self, scope: Scope, expr: int, *, short: bool = False) -> str:
        """Write what is reduced, with what changes nothing where it is masked off; a count in 32 bits where it is `short`."""
        record = self.b.exprs[expr]
        (arg,), axes = record.args, self._over(expr)
        source, text = self.b.exprs[arg], self.body.text(scope, record.args[0])[0]
        if source.dtype == "bool":
            text = f"tl.where({text}, 1, 0){'' if short else '.to(tl.int64)'}"
        elif record.dtype == "int64" and source.dtype == "int32":
            text = f"({text}).to(tl.int64)"
        elif record.kind is Fold.SUM and len(axes) == 1 and vanishes(self.b, arg, self.plan.bounds[expr]):
            return text
        return f"tl.where({' & '.join(self.axes.mask(axis) for axis in axes)}, {text}, {neutral(record.kind, record.dtype)})"

    def _scanned(self, scope: Scope, expr: int) -> str:
        record, over = self.b.exprs[expr], self._over(expr)
        if len(over) != 1:
            raise LoweringError("scans along several dimensions are not generated")
        # as rows of two dimensions: of more Triton 3.6 does not compile every layout
        kept = [axis for axis in self.axes.shaped if axis not in over and set(axis.atoms) & self.b.leaves_of(record)]
        rows, length = (" * ".join(self.axes.block(axis) for axis in some) or "1" for some in (kept, over))
        place = self.axes.place(over[0])
        if all(self.axes.place(axis) < place for axis in kept):
            flat = f"tl.reshape({self._masked(scope, expr)}, [{rows}, {length}])"
            return f"tl.reshape({scan_text(self.body, record, flat, 1)}, {self.axes.shape([*kept, *over])})"
        # what is accumulated along has to be the last dimension of such rows
        order = [*(each for each in range(self.axes.rank) if each != place), place]
        flat = f"tl.reshape(tl.permute({self._masked(scope, expr)}, {order}), [{rows}, {length}])"
        there = self.axes.shape([*kept, *over], order)
        back = [order.index(each) for each in range(self.axes.rank)]
        return f"tl.permute(tl.reshape({scan_text(self.body, record, flat, 1)}, {there}), {back})"

    def _over(self, expr: int) -> list[Axis]:
        return [axis for axis in self.axes.walked if set(axis.atoms) & self.plan.bounds[expr]]

    def _folded(self, expr: int, text: str, over: Sequence[Axis]) -> str:
        record = self.b.exprs[expr]
        if record.kind is Fold.PROD:
            raise LoweringError("a product of elements is not generated")
        for axis in reversed(over):
            text = reduction_text(self.body, record, text, self.axes.place(axis), keep=self.axes.rank > 1)
        return text
