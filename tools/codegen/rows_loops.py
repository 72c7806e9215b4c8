"""Long rows: block by block, with accumulators kept by lane.

Reductions that depend on one another make levels: a softmax needs its maximum before its sum. `looped` walks the row once
a level; `online` walks it once for both levels of a softmax (running maximum, sum rescaled as it grows) or of a variance
(Welford's update by lane, combined at the end by Chan's formula).
"""

from __future__ import annotations

from tools.codegen.expressions import Builder
from tools.codegen.frame import Frame, Parameters, Scope, neutral, vanishes


class LoopWriter:
    """Writes the passes over one row (or one tile of rows)."""

    def __init__(self, frame: Frame, vector: bool, parameters: Parameters) -> None:
        """Take the frame of the kernel and whether a program has several rows."""
        self.frame, self.vector, self.parameters = frame, vector, parameters
        self.b: Builder = frame.body.b
        self.shape = "[ROWS, BLOCK_N]" if vector else "[BLOCK_N]"
        self.axis = "axis=1, keep_dims=True" if vector else "axis=0"
        cols = frame.space.axis("cols")
        self.cols = frozenset(cols.atoms)
        self.n_cols = frame.space.monomial(cols.atoms)
        for access in frame.space.accesses:
            # asks for every offset once, so that the loops' heads know which indices are taken apart
            frame.offset(access)

    def write(self, scope: Scope) -> None:
        """Write every pass, then the stores."""
        outputs = self.frame.space.kernel.outputs
        pending = self._reductions([output.expr for output in outputs])
        pairs = online_pairs(self.b, pending) if self.parameters["algorithm"] == "online" else {}
        while pending:
            ready = [expr for expr in pending if not self._waits(expr, pending)]
            paired = [expr for expr in ready if expr in pairs]
            self._pass(scope, [expr for expr in ready if expr not in pairs], paired, pairs)
            done = {*ready, *(pairs[expr] for expr in paired)}
            pending = [expr for expr in pending if expr not in done]
        self._stores(scope)

    def _reductions(self, roots: list[int]) -> list[int]:
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

    def _waits(self, expr: int, pending: list[int]) -> bool:
        stack = list(self.b.exprs[expr].args)
        while stack:
            arg = stack.pop()
            if arg in pending:
                return True
            stack.extend(self.b.exprs[arg].args)
        return False

    def _loop(self, scope: Scope) -> Scope:
        stages = int(self.parameters.get("num_stages", 1))
        walk = f"range(0, {self.n_cols}, BLOCK_N)" if stages <= 1 else f"tl.range(0, {self.n_cols}, BLOCK_N, num_stages={stages})"
        scope.say(f"for start in {walk}:")
        inner = scope.nested()
        wide = ".to(tl.int64)" if self.frame.space.is_wide() else ""
        inner.say(f"cols = start + tl.arange(0, BLOCK_N){'[None, :]' if self.vector else ''}{wide}")
        inner.say(f"mask_n = cols < {self.n_cols}")
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

    def _pass(self, scope: Scope, plain: list[int], paired: list[int], pairs: dict[int, int]) -> None:
        self._prepare(scope, plain + paired)
        accumulators = {}
        for expr in plain:
            record = self.b.exprs[expr]
            kind = record.op.removeprefix("reduce_")
            name = self.frame.names.fresh(f"{self.frame.body.name_of(expr)}_lanes")
            accumulators[expr] = name
            scope.say(f"{name} = tl.full({self.shape}, {neutral(kind, record.dtype)}, tl.{record.dtype})")
        online = {expr: _Online(self, expr, pairs[expr]) for expr in paired}
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

    def _stores(self, scope: Scope) -> None:
        outputs = list(zip(self.frame.space.kernel.outputs, self.frame.writes, strict=True))
        wide = [(out, access) for out, access in outputs if set(access.strides) & self.cols]
        for out, access in outputs:
            if (out, access) not in wide:
                self.frame.store(scope, access, self.frame.body.assign(scope, out.expr))
        if not wide:
            return
        self._prepare(scope, [out.expr for out, _ in wide])
        inner = self._loop(scope)
        for out, access in wide:
            self.frame.store(inner, access, self.frame.body.assign(inner, out.expr))


def online_pairs(b: Builder, reductions: list[int]) -> dict[int, int]:
    """Find pairs that one pass can compute: a row's maximum with its sum of exponentials, its sum with its squared deviations."""
    pairs: dict[int, int] = {}
    for second in reductions:
        record = b.exprs[second]
        if record.op != "reduce_sum":
            continue
        first = (
            _softmax_first(b, record.args[0]) if b.exprs[record.args[0]].op in ("exp_fast", "exp") else _variance_first(b, record.args[0])
        )
        if first is not None and first in reductions and first not in pairs:
            pairs[first] = second
    return pairs


def _softmax_first(b: Builder, weight: int) -> int | None:
    shifted = b.exprs[b.exprs[weight].args[0]]
    if shifted.op != "sub":
        return None
    x, peak = shifted.args
    if b.exprs[peak].op == "finite":
        peak = b.exprs[peak].args[0]
    record = b.exprs[peak]
    return peak if record.op == "reduce_max" and record.args[0] == x else None


def _variance_first(b: Builder, square: int) -> int | None:
    record = b.exprs[square]
    if record.op != "mul" or record.args[0] != record.args[1]:
        return None
    centred = b.exprs[record.args[0]]
    if centred.op != "sub":
        return None
    x, mean = centred.args
    ratio = b.exprs[mean]
    if ratio.op != "div" or b.exprs[ratio.args[1]].op != "size":
        return None
    total = b.exprs[ratio.args[0]]
    return ratio.args[0] if total.op == "reduce_sum" and total.args[0] == x else None


class _Online:
    """One pair computed in one pass."""

    def __init__(self, loop: LoopWriter, first: int, second: int) -> None:
        self.loop, self.first, self.second = loop, first, second
        b, names = loop.b, loop.frame.names
        self.source = b.exprs[first].args[0]
        self.softmax = b.exprs[first].op == "reduce_max"
        self.one = names.fresh("lane_max" if self.softmax else "lane_mean")
        self.two = names.fresh("lane_sum" if self.softmax else "lane_m2")

    def open(self, scope: Scope) -> None:
        """Start the accumulators."""
        dtype = self.loop.b.exprs[self.first].dtype
        start = '-float("inf")' if self.softmax else "0.0"
        scope.say(f"{self.one} = tl.full({self.loop.shape}, {start}, tl.{dtype})")
        scope.say(f"{self.two} = tl.full({self.loop.shape}, 0.0, tl.{dtype})")

    def update(self, inner: Scope) -> None:
        """Take in one block."""
        x = self.loop.frame.body.assign(inner, self.source)
        one, two = self.one, self.two
        if self.softmax:
            inner.say(f'new_max = tl.maximum({one}, tl.where(mask_n, {x}, -float("inf")))')
            inner.say('anchor = tl.where(new_max == -float("inf"), 0.0, new_max)')
            inner.say(f"{two} = {two} * tl.exp({one} - anchor) + tl.where(mask_n, tl.exp({x} - anchor), 0.0)")
            inner.say(f"{one} = new_max")
            return
        inner.say("count = start // BLOCK_N + 1")
        inner.say(f"delta = {x} - {one}")
        inner.say(f"{one} += tl.where(mask_n, delta / count, 0.0)")
        inner.say(f"{two} += tl.where(mask_n, delta * ({x} - {one}), 0.0)")

    def close(self, scope: Scope) -> None:
        """Combine the lanes."""
        body, axis = self.loop.frame.body, self.loop.axis
        if self.softmax:
            peak = body.bind(scope, self.first, f"tl.max({self.one}, {axis})")
            scope.say(f'anchor = tl.where({peak} == -float("inf"), 0.0, {peak})')
            body.bind(scope, self.second, f"tl.sum({self.two} * tl.exp({self.one} - anchor), {axis})")
            return
        n_cols = self.loop.n_cols
        lanes = f"tl.arange(0, BLOCK_N){'[None, :]' if self.loop.vector else ''}"
        counts = self.loop.frame.names.fresh("lane_count")
        scope.say(f"{counts} = ({n_cols} - {lanes} + BLOCK_N - 1) // BLOCK_N")
        total = body.bind(scope, self.first, f"tl.sum({self.one} * {counts}, {axis})")
        mean = self.loop.frame.names.fresh("lanes_mean")
        scope.say(f"{mean} = {total} / {n_cols}")
        spread = f"({self.one} - {mean})"
        body.bind(scope, self.second, f"tl.sum({self.two} + {counts} * {spread} * {spread}, {axis})")
