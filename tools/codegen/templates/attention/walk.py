"""The walk of an attention along its keys: where a tile of queries begins, scores, online softmax, and the sum of weighted values."""

from __future__ import annotations

from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.attention.bounds import Bound, bounds_of, is_causal
from tools.codegen.templates.attention.knobs import reuses_keys
from tools.codegen.templates.attention.layout import OWN_NAMES, AttentionLayout, Operand, ScoreProduct, suffix
from tools.codegen.templates.attention.scores import factors_of
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, conversion
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.shared.operand_tile import OperandTiles, no_reductions

LOG2E = "1.4426950408889634"


class AttentionWalk:
    """Writes what a program does with its tile of queries."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: AttentionLayout) -> None:
        """Take the region, its layout and its parameters."""
        assert kernel.attention is not None
        assert kernel.contraction is not None
        self.name, self.parameters, self.plan = name, parameters, plan
        self.attention = kernel.attention
        self.space = plan.space(kernel)
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        operands = [each.expr for each in (*plan.queries, *plan.keys, plan.value)]
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._page, [*operands, *self._looked_at()])
        self.batched = plan.axes[0].name == "outer"
        self.has_rows = bool(self.space.axis("rows").atoms)
        self.whole_heads = {axis for axis, size in plan.heads.items() if int(parameters["BLOCK_D"]) >= size}
        self.whole_value = int(parameters["BLOCK_V"]) >= plan.n_wide
        self.keys_are_values = reuses_keys(plan, parameters)
        self.half = plan.dtype != "float32"
        self.precision = "" if self.half else f', input_precision="{parameters["precision"]}"'
        if self.half and not self.attention.softmax:
            # what weights are rounded to is coarser; a softmax would magnify it
            self.body.coarse = frozenset(factor for expr in self._looked_at() for factor in factors_of(kernel.builder, expr))
        self.splits = int(parameters.get("SPLIT_KEYS", 1))
        self.bounds, self.is_causal = bounds_of(kernel), is_causal(kernel)

    def _looked_at(self) -> list[int]:
        sink = [] if self.attention.sink is None else [self.attention.sink]
        return [self.attention.logits, *sink, *([self.attention.summed[1]] if self.attention.summed else [])]

    def new_frame(self, name: str) -> Frame:
        """Begin a kernel."""
        masks = {"rows": "mask_m", "cols": "mask_n", "wide": "mask_v", **{axis: f"mask_d{suffix(axis)}" for axis in self.plan.heads}}
        self.frame = Frame(self.space, name, Names(), self.reads, self.writes, self.body, masks)
        self.tiles = OperandTiles(self.frame, self.body)
        return self.frame

    def size(self, name: str) -> str:
        """Write the number of positions along an axis."""
        return self.space.monomial(self.space.axis(name).atoms) or "1"

    def head(self) -> list[str]:
        """Write where a program's tile lies."""
        tiles = "tiles_m" if self.whole_value else "(tiles_m * tiles_v)"
        lines = ["pid = tl.program_id(0)", f"tiles_m = tl.cdiv({self.size('rows')}, BLOCK_M)"]
        lines += [] if self.whole_value else [f"tiles_v = tl.cdiv({self.size('wide')}, BLOCK_V)"]
        if self.batched:
            lines += [f"batch = (pid // {tiles}).to(tl.int64)", *self.space.parts(self.space.axis("outer")), f"pid = pid % {tiles}"]
        # under a causal mask the last rows have most to do: they start first
        row = "pid" if self.whole_value else "pid // tiles_v"
        lines += [f"pid_m = tiles_m - 1 - {row}" if self.is_causal else f"pid_m = {row}"]
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines += [
            f"off_m = pid_m{wide} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            f"mask_m = off_m < {self.size('rows')}",
            *self.space.parts(self.space.axis("rows")),
            f"off_v = {'' if self.whole_value else 'pid % tiles_v * BLOCK_V + '}tl.arange(0, BLOCK_V)[None, :]",
            f"mask_v = off_v < {self.size('wide')}",
        ]
        for axis in self.plan.heads:
            if axis in self.whole_heads:
                number = suffix(axis)
                lines += [
                    f"off_d{number} = tl.arange(0, BLOCK_D{number})[None, :]",
                    f"mask_d{number} = off_d{number} < {self.size(axis)}",
                ]
        return ["    " + line for line in lines]

    def walk(self, scope: Scope) -> None:
        """Write the loop over the keys, which leaves `acc`, with a softmax `peak` and `total`, and `total` of another sum."""
        rows_of_step = "tl.arange(0, BLOCK_N)[:, None]"
        for query in self.plan.queries:
            self._queries(scope, query)
        begin, end = self._range(scope)
        first = rows_of_step if begin == "0" else f"({begin} + {rows_of_step})"
        walked = self._walked()
        for each in walked:
            along = [each.axis] if each.axis in (*self.whole_heads, "wide") else []
            scope.say(f"{_tile(each)} = {self._base(each.access, *along)} + {self._stride(each.access, 'cols').format(first)}")
        if self.attention.softmax:
            scope.say('peak = tl.full([BLOCK_M, 1], -float("inf"), tl.float32)')
        if self.attention.softmax or self.attention.summed:
            scope.say("total = tl.zeros([BLOCK_M, 1], tl.float32)")
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)")
        computed = [each for each in (*self.plan.keys, self.plan.value) if each.is_computed]
        ahead = {each.name: Scope(scope.lines, scope.indent, scope) for each in computed}
        for each in computed:
            with self.tiles.along({}):
                self.tiles.before(ahead[each.name], each.expr, frozenset(self.space.axis("cols").atoms))
        scope.say(f"for start in range({begin}, {end}, BLOCK_N):")
        self._step(scope.nested(), ahead, walked)

    def _walked(self) -> list[Operand]:
        """List what is read along the keys as it lies, a pointer to each of which goes from step to step."""
        values = [] if self.keys_are_values else [self.plan.value]
        return [each for each in (*self.plan.keys, *values) if not each.is_computed]

    def _queries(self, scope: Scope, query: Operand) -> None:
        number, own = suffix(query.name), suffix(query.axis)
        if query.is_computed:
            inside = Scope(scope.lines, scope.indent, scope)
            with self.tiles.along({}):
                summed = frozenset(self.space.axis(query.axis).atoms)
                text = self.tiles.tile(inside, query.expr, self.plan.dtype, summed, f"mask_d{own}")
                scope.say(f"queries{number} = tl.zeros([BLOCK_M, BLOCK_D{own}], tl.{self.plan.dtype}) + {text}")
        elif query.axis in self.whole_heads:
            scope.say(f"queries{number} = tl.load({self._base(query.access, query.axis)}, mask=mask_m & mask_d{own}, other=0.0)")
        else:
            scope.say(f"query_tile{number} = {self._base(query.access)}")

    def _range(self, scope: Scope) -> tuple[str, str]:
        """Write which keys are walked: those that a mask of positions leaves, and of these a program's share."""
        begin, end = "0", self.size("cols")
        above = [self._limit(scope, bound) for bound in self.bounds if bound.above]
        below = [self._limit(scope, bound) for bound in self.bounds if not bound.above]
        if above:
            scope.say(f"end = tl.minimum({end}, {above[0]})")
            for more in above[1:]:
                scope.say(f"end = tl.minimum(end, {more})")
            end = "end"
        if below:
            scope.say(f"begin = tl.maximum(0, {below[0]}) // BLOCK_N * BLOCK_N")
            for more in below[1:]:
                scope.say(f"begin = tl.maximum(begin, {more}) // BLOCK_N * BLOCK_N")
            begin = "begin"
        if self.splits > 1:
            scope.say(f"part = tl.cdiv(tl.cdiv({end} - {begin}, BLOCK_N), tl.num_programs(1)) * BLOCK_N")
            scope.say(f"begin = {begin} + tl.program_id(1) * part" if begin != "0" else "begin = tl.program_id(1) * part")
            scope.say(f"end = tl.minimum({end}, begin + part)")
            begin, end = "begin", "end"
        return begin, end

    def _limit(self, scope: Scope, bound: Bound) -> str:
        """Write the end of what a limit from above leaves, or the first key that one from below does."""
        constant = bound.rest.constant + (1 if bound.above else 0)
        terms = []
        if bound.with_row:
            # of the last row, whose columns go farthest, or of the first
            terms.append("(pid_m + 1) * BLOCK_M - 1" if bound.above else "pid_m * BLOCK_M")
        for factor, expr in bound.rest.values:
            # a number that is one has no method to convert it
            text = f"tl.cast({self.body.assign(scope, expr)}, tl.int32)"
            terms.append(text if factor == 1 else f"{factor} * {text}")
        text = " + ".join(terms)
        if bound.with_row and bound.above and constant == 1 and len(terms) == 1:
            return "(pid_m + 1) * BLOCK_M"
        return f"{text} + {constant}" if constant > 0 and text else f"{text} - {-constant}" if constant and text else text or str(constant)

    def _step(self, loop: Scope, ahead: dict[str, Scope], walked: list[Operand]) -> None:
        """Write what is done with one block of keys and values."""
        n_cols = "end" if self.splits > 1 else self.size("cols")
        loop.say("off_n = start + tl.arange(0, BLOCK_N)[None, :]")
        loop.say(f"mask_n = off_n < {n_cols}")
        cols = self.space.axis("cols")
        if len(cols.groups) > 1:
            self.tiles.parts(loop, cols)
        there = f"(tl.arange(0, BLOCK_N)[:, None] < {n_cols} - start)"
        if ahead:
            loop.say("key_n = start + tl.arange(0, BLOCK_N)[:, None]")
            loop.say(f"key_there = key_n < {n_cols}")
            with self.tiles.along({"cols": ("key_n", "key_there")}):
                if len(cols.groups) > 1:
                    self.tiles.parts(loop, cols)
        self._load_keys(loop, ahead, there)
        for place, each in enumerate(self.plan.products, 1):
            loop.names[each.expr] = f"scores_{place}" if place > 1 else "scores"
            self._make_scores(loop, each, loop.names[each.expr], there)
        logits = self.body.assign(loop, self.attention.logits)
        if self.attention.softmax:
            self._running_softmax(loop, logits)
        else:
            loop.say(f"weights = tl.where(mask_n, {logits}, 0.0)")
        if self.attention.summed:
            summed = self.body.assign(loop, self.attention.summed[1])
            loop.say(f"total += tl.sum(tl.where(mask_n, {summed}, 0.0), axis=1, keep_dims=True)")
        self._add_values(loop, ahead, there)
        for operand in walked:
            loop.say(f"{_tile(operand)} += {self._stride(operand.access, 'cols').format('BLOCK_N')}")

    def _add_values(self, loop: Scope, ahead: dict[str, Scope], there: str) -> None:
        """Write the product of weights and values."""
        if self.plan.value.is_computed:
            loop.say(f"values = {self._computed(loop, ahead['value'], self.plan.value)}")
        elif self.keys_are_values:
            loop.say(f"values = keys{suffix(self.keys_are_values)}")
        else:
            loop.say(f"values = tl.load(value_tile, mask={there} & mask_v, other=0.0)")
        rescaled = "acc * rescale" if self.attention.softmax else "acc"
        if self.half:
            loop.say(f"acc = tl.dot(weights.to(values.dtype), values, {rescaled})")
        else:
            # an addition would be folded into the product's accumulator; a multiply-add is not
            by = "rescale" if self.attention.softmax else "1.0"
            loop.say(f"acc = tl.fma(acc, {by}, tl.dot(weights, values{self.precision}))")

    def _computed(self, loop: Scope, ahead: Scope, operand: Operand) -> str:
        """Write keys or values that are made of what is read, a key a row."""
        own = Scope(loop.lines, loop.indent, ahead)
        # what no key or no element has must add nothing
        summed, mask = ("cols", "key_there") if operand.axis == "wide" else (operand.axis, f"mask_d{suffix(operand.axis)}")
        with self.tiles.along({"cols": ("key_n", "key_there")}):
            return self.tiles.tile(own, operand.expr, self.plan.dtype, frozenset(self.space.axis(summed).atoms), mask)

    def _load_keys(self, loop: Scope, ahead: dict[str, Scope], there: str) -> None:
        """Write what has the elements of a head whole: once, however many products read it."""
        for key in self.plan.keys:
            if key.is_computed:
                loop.say(f"keys{suffix(key.name)} = {self._computed(loop, ahead[key.name], key)}")
            elif key.axis in self.whole_heads:
                loop.say(f"keys{suffix(key.name)} = tl.load({_tile(key)}, mask={there} & mask_d{suffix(key.axis)}, other=0.0)")

    def _make_scores(self, loop: Scope, each: ScoreProduct, scores: str, there: str) -> None:
        """Write one product of queries and keys."""
        axis, queries, keys = suffix(each.key.axis), f"queries{suffix(each.query.name)}", f"keys{suffix(each.key.name)}"
        if each.key.axis in self.whole_heads:
            loop.say(f"{scores} = tl.dot({queries}, tl.trans({keys}){self.precision})")
            return
        n_inner, off = self.size(each.key.axis), f"off_d{axis}"
        along = [self._stride(side.access, each.key.axis).format(off) for side in (each.query, each.key)]
        loop.say(f"{scores} = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        loop.say(f"for d in range(0, {n_inner}, BLOCK_D{axis}):")
        inner = loop.nested()
        inner.say(f"{off} = d + tl.arange(0, BLOCK_D{axis})[None, :]")
        inner.say(f"mask_d{axis} = {off} < {n_inner}")
        inner.say(f"{queries} = tl.load(query_tile{suffix(each.query.name)} + {along[0]}, mask=mask_m & mask_d{axis}, other=0.0)")
        inner.say(f"{keys} = tl.load({_tile(each.key)} + {along[1]}, mask={there} & mask_d{axis}, other=0.0)")
        if self.half:
            inner.say(f"{scores} = tl.dot({queries}, tl.trans({keys}), {scores})")
        else:
            inner.say(f"{scores} = tl.fma(tl.dot({queries}, tl.trans({keys}){self.precision}), 1.0, {scores})")

    def _running_softmax(self, loop: Scope, logits: str) -> None:
        loop.say(f'logits = tl.where(mask_n, {logits}, -float("inf"))')
        loop.say("new_max = tl.maximum(peak, tl.max(logits, axis=1, keep_dims=True))")
        # a row without a finite logit so far has no maximum to subtract
        loop.say('anchor = tl.where(new_max == -float("inf"), 0.0, new_max)')
        loop.say(f"weights = tl.exp2((logits - anchor) * {LOG2E})")
        loop.say(f"rescale = tl.exp2((peak - anchor) * {LOG2E})")
        loop.say("total = total * rescale + tl.sum(weights, axis=1, keep_dims=True)")
        loop.say("peak = new_max")

    def _base(self, access: Access, *walked: str) -> str:
        """Write where a tile starts: along heads and rows, and along the axes that it has whole."""
        axes = [axis for axis in self.space.axes if axis.name in ("outer", "rows", *walked) and axis.groups]
        terms = [term for axis in axes if (term := self.space.along(access, axis))]
        if any(access is query.access for query in self.plan.queries) and not set(self.space.axis("rows").atoms) & access.strides.keys():
            # a single query, or one that is the same for all rows, stands in every row of a tile
            terms.append("off_m * 0")
        return " + ".join([f"{access.name}_ptr", *terms])

    def _stride(self, access: Access, name: str) -> str:
        axis = self.space.axis(name)
        if axis.atoms[-1] not in access.strides:
            return "{}"
        text = self.space.monomial(access.strides[axis.atoms[-1]])
        if not text:
            return "{}"
        return f"{{}} * {text}" if " " not in text else f"{{}} * ({text})"

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _page(self, scope: Scope, expr: int) -> str:
        """Write the read of a tensor at positions that are data."""
        record = self.body.b.exprs[expr]
        if record.op != "read":
            return no_reductions(scope, expr)
        access, leaves, terms = self.reads[record.extra[0]], self.body.b.leaves_of(record), []
        positions, guards = (record.args[:-1], record.args[-1:]) if record.extra[1] else (record.args, ())
        for place, position in enumerate(positions):
            stride = f"stride_{access.name}_{place}"
            self.space.strides[stride] = f"{access.name}.stride({place})"
            terms.append(f"{self.body.assign(scope, position)} * {stride}")
        masks = [self.frame.masks[axis.name] for axis in self.space.axes if axis.name in self.frame.masks and set(axis.atoms) & leaves]
        masks += [self.body.assign(scope, guard) for guard in guards]
        zero = "0.0" if is_floating(access.meta.dtype) else "0"
        mask = f", mask={' & '.join(masks)}, other={zero}" if masks else ""
        return f"tl.load({' + '.join([f'{access.name}_ptr', *terms])}{mask})" + conversion(access.meta.dtype)


def _tile(operand: Operand) -> str:
    """Name the pointer that walks along the keys."""
    return "value_tile" if operand.axis == "wide" else f"key_tile{suffix(operand.name)}"
