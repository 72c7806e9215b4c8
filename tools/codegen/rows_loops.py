"""Long rows: block by block, with accumulators kept by lane.

Reductions that depend on one another make levels: a softmax needs its maximum before its sum. `looped` walks the row once
a level; `online` walks it once for both levels of a softmax (running maximum, sum rescaled as it grows) or of a variance
(Welford's update by lane, combined at the end by Chan's formula).
"""

from __future__ import annotations

from dataclasses import replace

from tools.codegen.expressions import Builder
from tools.codegen.frame import Frame, Parameters, Scope, neutral, vanishes
from tools.codegen.rows_online import online_pairs


class LoopWriter:
    """Writes the passes over one row (or one tile of rows)."""

    def __init__(self, frame: Frame, vector: bool, parameters: Parameters, chunked: bool = False) -> None:
        """Take the frame of the kernel, whether a program has several rows, and whether it walks a chunk `begin` to `end` of them."""
        self.frame, self.vector, self.parameters = frame, vector, parameters
        self.b: Builder = frame.body.b
        self.shape = "[ROWS, BLOCK_N]" if vector else "[BLOCK_N]"
        self.axis = "axis=1, keep_dims=True" if vector else "axis=0"
        cols = frame.space.axis("cols")
        self.cols = frozenset(cols.atoms)
        self.n_cols = frame.space.monomial(cols.atoms)
        self.begin, self.end, self.length = ("begin", "end", "(end - begin)") if chunked else ("0", self.n_cols, self.n_cols)
        probe = replace(frame.space, used={}, strides={}, parts_used=set())
        for access in probe.accesses:
            for axis in probe.axes:
                probe.along(access, axis)
        frame.space.parts_used |= probe.parts_used

    def write(self, scope: Scope) -> None:
        """Write every pass, then the stores."""
        for plain, pairs in self.levels(merged=self.parameters["algorithm"] == "online"):
            self.walk(scope, plain, pairs)
        self.stores(scope)

    def levels(self, merged: bool) -> list[tuple[list[int], dict[int, int]]]:
        """List what each pass computes: reductions by themselves, and pairs that one pass can merge."""
        pending = self.reductions([output.expr for output in self.frame.space.kernel.outputs])
        pairs = online_pairs(self.b, pending) if merged else {}
        result = []
        while pending:
            ready = [expr for expr in pending if not self.waits(expr, pending)]
            paired = {expr: pairs[expr] for expr in ready if expr in pairs}
            result.append(([expr for expr in ready if expr not in pairs], paired))
            done = {*ready, *paired.values()}
            pending = [expr for expr in pending if expr not in done]
        return result

    def reductions(self, roots: list[int]) -> list[int]:
        """Find the reductions that expressions rest on."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            expr = stack.pop()
            if expr in seen:
                continue
            seen.add(expr)
            if self.b.exprs[expr].op.startswith("reduce_"):
                found[expr] = None
            stack.extend(self.b.exprs[expr].args)
        return sorted(found)

    def waits(self, expr: int, pending: list[int]) -> bool:
        """Whether an expression rests on one of those still to be computed."""
        stack = list(self.b.exprs[expr].args)
        while stack:
            arg = stack.pop()
            if arg in pending:
                return True
            stack.extend(self.b.exprs[arg].args)
        return False

    def _loop(self, scope: Scope) -> Scope:
        stages = int(self.parameters.get("num_stages", 1))
        walk = (
            f"range({self.begin}, {self.end}, BLOCK_N)"
            if stages <= 1
            else f"tl.range({self.begin}, {self.end}, BLOCK_N, num_stages={stages})"
        )
        self.before = len(scope.lines)
        self.outside = scope.indent
        scope.say(f"for start in {walk}:")
        inner = scope.nested()
        wide = ".to(tl.int64)" if self.frame.space.is_wide() else ""
        inner.say(f"cols = start + tl.arange(0, BLOCK_N){'[None, :]' if self.vector else ''}{wide}")
        inner.say(f"mask_n = cols < {self.end}")
        for line in self.frame.space.parts(self.frame.space.axis("cols")):
            inner.say(line)
        return inner

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
            if record.op.startswith("reduce_") and expr not in roots:
                continue
            flat = not set(self.b.atoms.leaves(tuple(record.atoms))) & self.cols
            if flat and expr not in roots and record.op not in ("const", "size", "argument"):
                found[expr] = None
            else:
                stack.extend(record.args)
        return sorted(found)

    def walk(self, scope: Scope, plain: list[int], pairs: dict[int, int]) -> None:
        """Write one pass over the columns."""
        self._prepare(scope, [*plain, *pairs])
        accumulators = {}
        for expr in plain:
            record = self.b.exprs[expr]
            kind = record.op.removeprefix("reduce_")
            name = self.frame.names.fresh(f"{self.frame.body.name_of(expr)}_lanes")
            accumulators[expr] = name
            scope.say(f"{name} = tl.full({self.shape}, {neutral(kind, record.dtype)}, tl.{record.dtype})")
        online = {first: _Online(self, first, second) for first, second in pairs.items()}
        for pair in online.values():
            pair.open(scope)
        inner = self._loop(scope)
        for expr, name in accumulators.items():
            self._accumulate(inner, expr, name)
        for pair in online.values():
            pair.update(inner)
        for expr, name in accumulators.items():
            kind = self.b.exprs[expr].op.removeprefix("reduce_")
            self.frame.body.bind(scope, expr, f"tl.{kind}({name}, {self.axis})")
        for pair in online.values():
            pair.close(scope)

    def _accumulate(self, inner: Scope, expr: int, name: str) -> None:
        record = self.b.exprs[expr]
        kind = record.op.removeprefix("reduce_")
        arg = record.args[0]
        text, _ = self.frame.body.text(inner, arg, top=True)
        if self.b.exprs[arg].dtype == "bool":
            text = f"tl.where({text}, 1, 0)"
        if kind != "sum" or not vanishes(self.b, arg, self.cols):
            text = f"tl.where(mask_n, {text}, {neutral(kind, self.b.exprs[arg].dtype if self.b.exprs[arg].dtype != 'bool' else 'int32')})"
        inner.say(f"{name} += {text}" if kind == "sum" else f"{name} = tl.{kind}imum({name}, {text})")

    def scan(self, inner: Scope, expr: int) -> str:
        """Write a scan of one block, carried over from the block before; the carry starts before the loop."""
        record = self.b.exprs[expr]
        kind, body = record.op.removeprefix("scan_"), self.frame.body
        carry = self.frame.names.fresh(f"{body.name_of(expr)}_carry")
        shape = "[ROWS, 1]" if self.vector else "[1]"
        none = neutral(kind, record.dtype)
        inner.lines.insert(self.before, f"{self.outside}{carry} = tl.full({shape}, {none}, tl.{record.dtype})")
        sign = "+" if kind == "sum" else "*"
        text = f"tl.where(mask_n, {body.text(inner, record.args[0])[0]}, {none})"
        name = body.bind(inner, expr, f"{carry} {sign} tl.cum{kind}({text}, axis={1 if self.vector else 0})")
        last = f"tl.arange(0, BLOCK_N){'[None, :]' if self.vector else ''} == BLOCK_N - 1"
        inner.say(f"{carry} = tl.zeros_like({carry}) + tl.sum(tl.where({last}, {name}, 0), {self.axis})")
        return name

    def stores(self, scope: Scope, row_guard: str = "") -> None:
        """Write the outputs: those of rows once, those of columns in a last pass."""
        outputs = list(zip(self.frame.space.kernel.outputs, self.frame.writes, strict=True))
        wide = [(out, access) for out, access in outputs if set(access.strides) & self.cols]
        narrow = [pair for pair in outputs if pair not in wide]
        values = [self.frame.body.assign(scope, out.expr) for out, _ in narrow]
        if narrow and row_guard:
            scope.say(f"if {row_guard}:")
        inside = scope.nested() if row_guard else scope
        for (_, access), value in zip(narrow, values, strict=True):
            self.frame.store(inside, access, value)
        if not wide:
            return
        self._prepare(scope, [out.expr for out, _ in wide])
        inner = self._loop(scope)
        for out, access in wide:
            self.frame.store(inner, access, self.frame.body.assign(inner, out.expr))


class _Online:
    """One pair computed in one pass."""

    def __init__(self, loop: LoopWriter, first: int, second: int) -> None:
        self.loop, self.first, self.second = loop, first, second
        b, names = loop.b, loop.frame.names
        self.source = b.exprs[first].args[0]
        self.softmax = b.exprs[first].op == "reduce_max"
        self.one = names.fresh("running_max" if self.softmax else "lane_mean")
        self.two = names.fresh("lane_sum" if self.softmax else "lane_m2")

    def open(self, scope: Scope) -> None:
        """Start the accumulators."""
        dtype = self.loop.b.exprs[self.first].dtype
        if self.softmax:
            # one maximum a row, not one a lane: each element then costs one exponential
            scope.say(f'{self.one} = tl.max(tl.full({self.loop.shape}, -float("inf"), tl.{dtype}), {self.loop.axis})')
        else:
            scope.say(f"{self.one} = tl.full({self.loop.shape}, 0.0, tl.{dtype})")
        scope.say(f"{self.two} = tl.full({self.loop.shape}, 0.0, tl.{dtype})")

    def update(self, inner: Scope) -> None:
        """Take in one block."""
        x = self.loop.frame.body.assign(inner, self.source)
        one, two = self.one, self.two
        if self.softmax:
            inner.say(f'new_max = tl.maximum({one}, tl.max(tl.where(mask_n, {x}, -float("inf")), {self.loop.axis}))')
            inner.say('anchor = tl.where(new_max == -float("inf"), 0.0, new_max)')
            inner.say(f"{two} = {two} * tl.exp({one} - anchor) + tl.where(mask_n, tl.exp({x} - anchor), 0.0)")
            inner.say(f"{one} = new_max")
            return
        first = "start" if self.loop.begin == "0" else "(start - begin)"
        inner.say(f"count = {first} // BLOCK_N + 1")
        inner.say(f"delta = {x} - {one}")
        inner.say(f"{one} += tl.where(mask_n, delta / count, 0.0)")
        inner.say(f"{two} += tl.where(mask_n, delta * ({x} - {one}), 0.0)")

    def close(self, scope: Scope) -> None:
        """Combine the lanes."""
        body, axis = self.loop.frame.body, self.loop.axis
        if self.softmax:
            body.bind(scope, self.first, self.one)
            body.bind(scope, self.second, f"tl.sum({self.two}, {axis})")
            return
        length = self.loop.length
        lanes = f"tl.arange(0, BLOCK_N){'[None, :]' if self.loop.vector else ''}"
        counts = self.loop.frame.names.fresh("lane_count")
        scope.say(f"{counts} = ({length} - {lanes} + BLOCK_N - 1) // BLOCK_N")
        total = body.bind(scope, self.first, f"tl.sum({self.one} * {counts}, {axis})")
        mean = self.loop.frame.names.fresh("lanes_mean")
        scope.say(f"{mean} = {total} / {length}")
        spread = f"({self.one} - {mean})"
        body.bind(scope, self.second, f"tl.sum({self.two} + {counts} * {spread} * {spread}, {axis})")
