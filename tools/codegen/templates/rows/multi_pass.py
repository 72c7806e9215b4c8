"""Long rows: block by block, with accumulators kept by lane.

Reductions that depend on one another make levels: a softmax needs its maximum before its sum. `looped` walks the row once
a level; `online` walks it once for both levels: online softmax, and Welford's variance (`online.py`). With `UNROLL` a step takes
several blocks at once, stacked so that each thread has its own in registers: more loads in flight, and no barrier in the loop.
"""

from __future__ import annotations

from dataclasses import replace

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.kernel import Output
from tools.codegen.templates.rows.column_loop import Steps
from tools.codegen.templates.rows.online import online_pair
from tools.codegen.templates.rows.online_pairs import online_pairs
from tools.codegen.templates.shared.frame import Access, Frame, Scope, neutral, vanishes
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.reductions import SIGNS, joined_text, reduction_text


class LoopWriter:
    """Writes the passes over one row (or one tile of rows)."""

    def __init__(self, frame: Frame, steps: Steps, parameters: Settings, early: bool) -> None:
        """Take the frame of the kernel, how a program steps along its row, and whether the first walk writes what lies along it."""
        self.frame, self.steps, self.parameters = frame, steps, parameters
        self.b: Builder = frame.body.b
        self.axis = steps.axis
        walked = frozenset(atom for axis in frame.space.axes if axis.name in ("steps", "cols") for atom in axis.atoms)
        self.cols = frame.space.with_pieces(walked)
        self.filled: set[int] = set()
        self.split = parameters["algorithm"] == "split"
        self.early = early
        self.carries: dict[int, str] = {}
        """What scans start from, by scan, where a row is split: all that the chunks before this one add up to."""
        probe = replace(frame.space, used={}, strides={}, parts_used=set())
        for access in probe.accesses:
            for axis in probe.axes:
                probe.along(access, axis)
        frame.space.parts_used |= probe.parts_used

    def write(self, scope: Scope) -> None:
        """Write every pass, then the stores."""
        for place, (plain, pairs) in enumerate(self.levels(merged=self.parameters["algorithm"] == "online")):
            self.walk(scope, plain, pairs, first=not place)
        self.stores(scope)

    def levels(self, merged: bool) -> list[tuple[list[int], dict[int, int]]]:
        """List what each pass computes: reductions by themselves, and pairs that one pass can merge."""
        pending = self.reductions([output.expr for output in self.frame.space.kernel.outputs])
        pairs = online_pairs(self.b, [expr for expr in pending if not self.b.exprs[expr].is_scan]) if merged else {}
        result = []
        while pending:
            ready = [expr for expr in pending if not self.waits(expr, pending)]
            paired = {expr: pairs[expr] for expr in ready if expr in pairs}
            result.append(([expr for expr in ready if expr not in pairs], paired))
            done = {*ready, *paired.values()}
            pending = [expr for expr in pending if expr not in done]
        return result

    def reductions(self, roots: list[int]) -> list[int]:
        """Find the reductions that expressions rest on; where a row is split, a scan needs the sum or product of each chunk, too."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            expr = stack.pop()
            if expr in seen:
                continue
            seen.add(expr)
            if self.b.exprs[expr].reduces() or (self.split and self.b.exprs[expr].is_scan):
                found[expr] = None
            stack.extend(self.b.exprs[expr].args)
        return sorted(found)

    def waits(self, expr: int, pending: list[int]) -> bool:
        """Whether an expression rests on one of those still to be computed."""
        return self._rests_on(self.b.exprs[expr].args, set(pending))

    def _rests_on(self, roots: tuple[int, ...], wanted: set[int]) -> bool:
        stack = list(roots)
        while stack:
            arg = stack.pop()
            if arg in wanted:
                return True
            stack.extend(self.b.exprs[arg].args)
        return False

    def _prepare(self, scope: Scope, exprs: list[int]) -> None:
        """Give what does not vary along the columns its variable before the loop."""
        for expr in self._row_values(exprs):
            self.frame.body.assign(scope, expr)

    def _row_values(self, roots: list[int]) -> list[int]:
        found: dict[int, None] = {}
        stack = list(roots)
        while stack:
            expr = stack.pop()
            record = self.b.exprs[expr]
            if record.reduces() and expr not in roots:
                continue
            flat = not set(self.b.atoms.leaves(tuple(record.atoms))) & self.cols
            if flat and expr not in roots and record.op not in ("const", "size", "argument"):
                found[expr] = None
            else:
                stack.extend(record.args)
        return sorted(found)

    def walk(self, scope: Scope, plain: list[int], pairs: dict[int, int], first: bool) -> None:
        """Write one pass over the columns; the first writes what waits for no reduction."""
        written = self._wide() if self.early and first else []
        self._prepare(scope, [*plain, *pairs, *(out.expr for out, _ in written)])
        accumulators = {}
        for expr in plain:
            record = self.b.exprs[expr]
            kind = record.kind
            name = self.frame.names.fresh(f"{self.frame.body.name_of(expr)}_lanes")
            accumulators[expr] = name
            scope.say(f"{name} = tl.full({self.steps.lanes}, {neutral(kind, record.dtype)}, tl.{record.dtype})")
        online = [online_pair(self, first, second) for first, second in pairs.items()]
        for pair in online:
            pair.open(scope)
        inner = self.steps.loop(scope)
        self.filled = set()
        for pair in online:
            pair.load(inner)
        for expr, name in accumulators.items():
            self._accumulate(inner, expr, name)
        for pair in online:
            pair.update(inner)
        self._store(inner, written)
        for expr, name in accumulators.items():
            if self.b.exprs[expr].is_scan:
                scope.names[expr] = self.frame.names.fresh(f"{self.frame.body.name_of(expr)}_total")
                scope.say(f"{scope.names[expr]} = {self.whole(expr, name)}")
            else:
                self.frame.body.bind(scope, expr, self.whole(expr, name))
        for pair in online:
            pair.close(scope)

    def whole(self, expr: int, lanes: str) -> str:
        """Write a reduction of accumulated lanes, or of partial results."""
        return reduction_text(self.frame.body, self.b.exprs[expr], lanes, int(self.steps.vector), keep=self.steps.vector)

    def fill(self, inner: Scope, expr: int, value: str) -> bool:
        """Load a tensor with `value` beyond the row's end, where the expression is a load that this step has not made yet."""
        record = self.b.exprs[expr]
        if record.op != "load" or inner.find(expr) is not None:
            return False
        self.frame.body.bind(inner, expr, self.frame.load_text(self.frame.reads[record.extra], value))
        self.filled.add(expr)
        return True

    def _accumulate(self, inner: Scope, expr: int, name: str) -> None:
        record = self.b.exprs[expr]
        kind = record.kind
        arg = record.args[0]
        dtype = self.b.exprs[arg].dtype
        text, _ = self.frame.body.text(inner, arg, top=True)
        if dtype == "bool":
            text, dtype = f"tl.where({text}, 1, 0)", "int32"
        inner_cols = frozenset(self.frame.space.axis("cols").atoms)
        if kind != "sum" or self._rests_on((arg,), self.filled) or not vanishes(self.b, arg, inner_cols):
            text = f"tl.where(mask_n, {text}, {neutral(kind, dtype)})"
        text = self.steps.folded(self.frame.body, record, text)
        inner.say(f"{name} {SIGNS[kind]}= {text}" if kind in SIGNS else f"{name} = {joined_text(self.frame.body, record, name, text)}")

    def scan(self, inner: Scope, expr: int) -> str:
        """Write a scan of one block, carried over from the block before; the carry starts before the loop."""
        record = self.b.exprs[expr]
        kind, body, backwards = record.kind, self.frame.body, self.steps.backwards
        carry = self.frame.names.fresh(f"{body.name_of(expr)}_carry")
        shape = "[ROWS, 1]" if self.steps.vector else "[1]"
        none = neutral(kind, record.dtype)
        sign, axis = "+" if kind == "sum" else "*", 1 if self.steps.vector else 0
        start = f" {sign} {self.carries[expr]}" if expr in self.carries else ""
        self.steps.before(inner, f"{carry} = tl.full({shape}, {none}, tl.{record.dtype}){start}")
        text = f"tl.where(mask_n, {body.text(inner, record.args[0])[0]}, {none})"
        name = body.bind(inner, expr, f"{carry} {sign} tl.cum{kind}({text}, axis={axis}{', reverse=True' if backwards else ''})")
        last = f"tl.arange(0, BLOCK_N){'[None, :]' if self.steps.vector else ''} == {'0' if backwards else 'BLOCK_N - 1'}"
        inner.say(f"{carry} = tl.zeros_like({carry}) + tl.sum(tl.where({last}, {name}, 0), {self.axis})")
        return name

    def stores(self, scope: Scope, row_guard: str = "") -> None:
        """Write the outputs: those of rows once, those of columns in a last pass."""
        wide = self._wide()
        narrow = [pair for pair in self._outputs() if pair not in wide]
        values = [self.frame.body.assign(scope, out.expr) for out, _ in narrow]
        if narrow and row_guard:
            scope.say(f"if {row_guard}:")
        inside = scope.nested() if row_guard else scope
        for (_, access), value in zip(narrow, values, strict=True):
            self.frame.store(inside, access, value)
        if not wide or self.early:
            return
        self._prepare(scope, [out.expr for out, _ in wide])
        self._store(self.steps.loop(scope), wide)

    def _outputs(self) -> list[tuple[Output, Access]]:
        return list(zip(self.frame.space.kernel.outputs, self.frame.writes, strict=True))

    def _wide(self) -> list[tuple[Output, Access]]:
        return [(out, access) for out, access in self._outputs() if set(access.strides) & self.cols]

    def _store(self, inner: Scope, written: list[tuple[Output, Access]]) -> None:
        for out, access in written:
            self.frame.store(inner, access, self.frame.body.assign(inner, out.expr))
