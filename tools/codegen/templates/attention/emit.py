"""The template of attention: a tile of queries a program walks the keys once, by online softmax, and writes no scores.

The running maximum rescales what was summed before it grew. Sums are kept in float32; with float32 operands each step's
products are added in a fresh accumulator. `BLOCK_D` below the size of a head walks the head in steps, and `BLOCK_V` below the
size of a value gives the rest of it to other programs, each of which makes the scores again.
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.attention.layout import OWN_NAMES, AttentionLayout, attention_layout
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, guard, summary
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope

LOG2E = "1.4426950408889634"


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    return _Writer(kernel, name, parameters, attention_layout(kernel)).write()


class _Writer:
    """Writes one attention region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: AttentionLayout) -> None:
        assert kernel.attention is not None
        assert kernel.contraction is not None
        self.name, self.parameters, self.plan = name, parameters, plan
        self.attention, self.contraction = kernel.attention, kernel.contraction
        self.space = plan.space(kernel)
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        self.body = Body(self.space, Names(OWN_NAMES), self._load, self._reduce)
        masks = {"rows": "mask_m", "cols": "mask_n", "inner": "mask_d", "wide": "mask_v"}
        self.frame = Frame(self.space, f"{name}_kernel", Names(), self.reads, self.writes, self.body, masks)
        self.batched = plan.axes[0].name == "outer"
        self.whole_head = int(parameters["BLOCK_D"]) >= plan.n_inner
        self.whole_value = int(parameters["BLOCK_V"]) >= plan.n_wide
        self.half = plan.dtype != "float32"
        self.precision = "" if self.half else f', input_precision="{parameters["precision"]}"'

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        self._walk(scope)
        scope.names[self.attention.expr] = "acc"
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))
        text = self.frame.finish([*self._head(), *lines])
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", self.frame.signature(["BLOCK_M", "BLOCK_N", "BLOCK_D", "BLOCK_V"]), ":"),
            f'    """One tile of queries a program, all keys: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        return RegionText(
            self.name,
            tuple(access.ref for access in self.reads),
            tuple(access.ref for access in self.writes),
            "\n".join([*kernel, "", "", *self._host()]),
            tuple(self.body.helpers),
        )

    def _head(self) -> list[str]:
        size = {axis.name: self.space.monomial(axis.atoms) for axis in self.space.axes}
        tiles = "tiles_m" if self.whole_value else "(tiles_m * tiles_v)"
        lines = ["pid = tl.program_id(0)", f"tiles_m = tl.cdiv({size['rows']}, BLOCK_M)"]
        lines += [] if self.whole_value else [f"tiles_v = tl.cdiv({size['wide']}, BLOCK_V)"]
        if self.batched:
            lines += [f"batch = (pid // {tiles}).to(tl.int64)", *self.space.parts(self.space.axis("outer")), f"pid = pid % {tiles}"]
        # under a causal mask the last rows have most to do: they start first
        row = "pid" if self.whole_value else "pid // tiles_v"
        lines += [f"pid_m = tiles_m - 1 - {row}" if self.attention.causal else f"pid_m = {row}"]
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines += [
            f"off_m = pid_m{wide} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            f"mask_m = off_m < {size['rows']}",
            *self.space.parts(self.space.axis("rows")),
            f"off_v = {'' if self.whole_value else 'pid % tiles_v * BLOCK_V + '}tl.arange(0, BLOCK_V)[None, :]",
            f"mask_v = off_v < {size['wide']}",
        ]
        if self.whole_head:
            lines += ["off_d = tl.arange(0, BLOCK_D)[None, :]", f"mask_d = off_d < {size['inner']}"]
        return ["    " + line for line in lines]

    def _walk(self, scope: Scope) -> None:
        """Write the loop over the keys."""
        n_cols = self.space.monomial(self.space.axis("cols").atoms)
        softmax = self.attention.softmax
        key_step, value_step = (self._stride(access, "cols") for access in (self.plan.key, self.plan.value))
        rows_of_step = "tl.arange(0, BLOCK_N)[:, None]"
        if self.whole_head:
            scope.say(f"queries = tl.load({self._base(self.plan.query, 'inner')}, mask=mask_m & mask_d, other=0.0)")
            scope.say(f"key_tile = {self._base(self.plan.key, 'inner')} + {key_step.format(rows_of_step)}")
        else:
            scope.say(f"query_tile = {self._base(self.plan.query)}")
            scope.say(f"key_tile = {self._base(self.plan.key)} + {key_step.format(rows_of_step)}")
        scope.say(f"value_tile = {self._base(self.plan.value, 'wide')} + {value_step.format(rows_of_step)}")
        if softmax:
            scope.say('peak = tl.full([BLOCK_M, 1], -float("inf"), tl.float32)')
            scope.say("total = tl.zeros([BLOCK_M, 1], tl.float32)")
        scope.say("acc = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)")
        end = n_cols
        if self.attention.causal:
            scope.say(f"end = tl.minimum({n_cols}, (pid_m + 1) * BLOCK_M)")
            end = "end"
        scope.say(f"for start in range(0, {end}, BLOCK_N):")
        self._step(scope.nested(), n_cols, key_step, value_step)
        if softmax:
            scope.say("acc = tl.where(total == 0.0, 0.0, acc / total)" if self.attention.safe else "acc = acc / total")

    def _step(self, loop: Scope, n_cols: str, key_step: str, value_step: str) -> None:
        """Write what is done with one block of keys and values."""
        loop.say("off_n = start + tl.arange(0, BLOCK_N)[None, :]")
        loop.say(f"mask_n = off_n < {n_cols}")
        there = f"(tl.arange(0, BLOCK_N)[:, None] < {n_cols} - start)"
        self._make_scores(loop, there)
        loop.names[self.contraction.expr] = "scores"
        logits = self.body.assign(loop, self.attention.logits)
        if self.attention.softmax:
            self._running_softmax(loop, logits)
        else:
            loop.say(f"weights = tl.where(mask_n, {logits}, 0.0)")
        loop.say(f"values = tl.load(value_tile, mask={there} & mask_v, other=0.0)")
        rescaled = "acc * rescale" if self.attention.softmax else "acc"
        if self.half:
            loop.say(f"acc = tl.dot(weights.to(values.dtype), values, {rescaled})")
        else:
            # an addition would be folded into the product's accumulator; a multiply-add is not
            by = "rescale" if self.attention.softmax else "1.0"
            loop.say(f"acc = tl.fma(acc, {by}, tl.dot(weights, values{self.precision}))")
        loop.say(f"key_tile += {key_step.format('BLOCK_N')}")
        loop.say(f"value_tile += {value_step.format('BLOCK_N')}")

    def _make_scores(self, loop: Scope, there: str) -> None:
        if self.whole_head:
            loop.say(f"keys = tl.load(key_tile, mask={there} & mask_d, other=0.0)")
            loop.say(f"scores = tl.dot(queries, tl.trans(keys){self.precision})")
            return
        n_inner = self.space.monomial(self.space.axis("inner").atoms)
        along = [self._stride(access, "inner").format("off_d") for access in (self.plan.query, self.plan.key)]
        loop.say("scores = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)")
        loop.say(f"for d in range(0, {n_inner}, BLOCK_D):")
        inner = loop.nested()
        inner.say("off_d = d + tl.arange(0, BLOCK_D)[None, :]")
        inner.say(f"mask_d = off_d < {n_inner}")
        inner.say(f"queries = tl.load(query_tile + {along[0]}, mask=mask_m & mask_d, other=0.0)")
        inner.say(f"keys = tl.load(key_tile + {along[1]}, mask={there} & mask_d, other=0.0)")
        if self.half:
            inner.say("scores = tl.dot(queries, tl.trans(keys), scores)")
        else:
            inner.say(f"scores = tl.fma(tl.dot(queries, tl.trans(keys){self.precision}), 1.0, scores)")

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
        axes = [axis for axis in self.space.axes if axis.name in ("outer", "rows", *walked)]
        return " + ".join([f"{access.name}_ptr", *(term for axis in axes if (term := self.space.along(access, axis)))])

    def _stride(self, access: Access, name: str) -> str:
        axis = self.space.axis(name)
        text = self.space.monomial(access.strides[axis.atoms[-1]])
        if not text:
            return "{}"
        return f"{{}} * {text}" if " " not in text else f"{{}} * ({text})"

    def _host(self) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        for axis in self.space.axes:
            self.space.used.setdefault(axis.size_name, axis.atoms)
        lines += self.frame.size_lines(known)
        lines += [allocation(self.space, access, known, self.reads[0].name) for access in self.writes]
        lines += guard(self.space, (self.plan.query, self.plan.key, self.plan.value, *self.writes))
        p = self.parameters
        constants: dict[str, object] = {name: p[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_D", "BLOCK_V")}
        if self.whole_head:
            lines.append("block_d = max(16, triton.next_power_of_2(n_inner))")
            constants["BLOCK_D"] = "block_d"
        if self.whole_value:
            lines.append("block_v = max(16, triton.next_power_of_2(n_wide))")
            constants["BLOCK_V"] = "block_v"
        batch = "n_outer * " if self.batched else ""
        slices = "" if self.whole_value else f" * triton.cdiv(n_wide, {p['BLOCK_V']})"
        lines.append(f"grid = ({batch}triton.cdiv(n_rows, {p['BLOCK_M']}){slices},)")
        launch = [f"num_warps={p['num_warps']}", f"num_stages={p['num_stages']}"]
        lines += block(f"{self.name}_kernel[grid]", [*self.frame.call_arguments(constants), *launch], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        parameters = [f"{access.name}: torch.Tensor" for access in self.reads]
        return [*block(f"def {self.name}", parameters, f" -> {result}:"), *("    " + line for line in lines)]

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("an attention's region has no other reductions")
