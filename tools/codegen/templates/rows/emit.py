"""The template of row regions: reductions, softmax, norms and scans, each with its prologue and its epilogue in one kernel.

`registers` holds whole rows in registers: each input is read once. `looped` walks long rows block by block, once for each level of
reductions that depend on one another and once more to write; `online` merges the levels: online softmax, whose running sum is rescaled,
and Welford's variance. `split` gives a row to several programs (`split_reduction.py`), `l2_two_pass` does so in one launch whose second
reading of a row follows soon upon the first (`l2_two_pass.py`). Sums are kept by lane and combined at the end, so that long rows lose no
accuracy.
"""

from __future__ import annotations

from tools.codegen.ir.expr import Expr, Fold
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.rows.l2_two_pass import L2TwoPassWriter
from tools.codegen.templates.rows.layout import RowLayout, row_layout
from tools.codegen.templates.rows.multi_pass import LoopWriter
from tools.codegen.templates.rows.row_index import row_lines, row_masks, row_steps, row_tiles
from tools.codegen.templates.rows.split_reduction import SplitWriter
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, guard, neutral, never_empty, summary, vanishes
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope
from tools.codegen.templates.shared.reductions import reduction_text

SEVERAL = {"split": SplitWriter, "l2_two_pass": L2TwoPassWriter}
"""Algorithms that give a row to several programs."""


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    plan = row_layout(kernel)
    if parameters["algorithm"] in SEVERAL:
        return SEVERAL[parameters["algorithm"]](kernel, name, parameters, plan).write()
    return _Writer(kernel, name, parameters, plan).write()


class _Writer:
    """Writes one row region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: RowLayout) -> None:
        self.name, self.parameters, self.plan = name, parameters, plan
        names = Names()
        self.vector = int(parameters["ROWS"]) > 1 and bool(plan.rows)
        self.looped = parameters["algorithm"] != "registers"
        self.space = plan.space(kernel, self.vector, self.looped)
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        self.steps = row_steps(self.space, plan, parameters, self.vector)
        masks = row_masks(self.steps)
        self.body = Body(self.space, names, self._load, self._reduce)
        self.frame = Frame(self.space, f"{name}_kernel", names, self.reads, self.writes, self.body, masks)
        self.loop: LoopWriter | None = None

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        if self.looped:
            self.loop = LoopWriter(self.frame, self.steps, self.parameters, self.plan.early)
            self.loop.write(scope)
        else:
            self._store_all(scope)
        text = self.frame.finish([*self._head(), *lines])
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", self.frame.signature(["ROWS", "UNROLL", "BLOCK_N"]), ":"),
            f'    """{self._words()}: {summary(self.space.kernel, self.reads, self.writes)}."""',
            *text,
        ]
        return RegionText(
            self.name,
            tuple(access.ref for access in self.reads),
            tuple(access.ref for access in self.writes),
            "\n".join([*kernel, "", "", *self._host()]),
            tuple(self.body.helpers),
            tuple(self.frame.given.values()),
        )

    def _words(self) -> str:
        if not self.space.kernel.reduced or not self.plan.rows:
            return "One program for everything"
        return f"{self.parameters['ROWS']} rows a program" if self.vector else "One row a program"

    def _store_all(self, scope: Scope) -> None:
        # every load before the first reduction: what waits at a barrier has its data on the way
        for place, expr in enumerate(self.body.b.exprs):
            if expr.op == "load" and self.body.uses.get(place):
                self.body.assign(scope, place)
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))

    def _head(self) -> list[str]:
        lines: list[str] = []
        n_cols = self.space.monomial(self.space.axis("cols").atoms)
        lines += row_lines(self.space, self.plan, self.vector, "tl.program_id(0)")
        if self.looped:
            lines += self.steps.opening()
        else:
            cols = self.space.axis("cols")
            wide = ".to(tl.int64)" if self.space.is_wide() and not self.plan.inner_reduction else ""
            lines += [f"cols = tl.arange(0, BLOCK_N){'[None, :]' if self.vector else ''}{wide}", f"mask_n = cols < {n_cols}"]
            lines += self.space.parts(cols)
        return ["    " + line for line in lines]

    def _host(self) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        device = self.reads[0].name
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        for axis in self.space.axes:
            if axis.name in ("outer", "rows"):
                self.space.used.setdefault(axis.size_name, axis.atoms)
        lines += [*self.frame.size_lines(known), *never_empty(self.space, [self.space.axis("cols")])]
        lines += [allocation(self.space, access, known, device) for access in self.writes]
        if not self.plan.inner_reduction:
            lines += guard(self.space, self.reads[:1])
        elif self.vector and self.plan.rows and self.space.takes_apart(self.space.axis("rows")):
            lines += guard(self.space, (*self.reads, *self.writes))
        constants: dict[str, object] = {
            "ROWS": self.parameters["ROWS"],
            "UNROLL": self.steps.blocks_a_step,
            "BLOCK_N": "triton.next_power_of_2(n_cols)",
        }
        if self.looped:
            lines.append(f"block_n = min(triton.next_power_of_2(n_cols), {self.parameters['BLOCK_N']})")
            constants["BLOCK_N"] = "block_n"
        lines.append(f"grid = ({row_tiles(self.space, self.plan, self.vector, int(self.parameters['ROWS']))},)")
        launch = f"num_warps={self.parameters['num_warps']}"
        lines += block(f"{self.name}_kernel[grid]", [*self.frame.call_arguments(constants), launch], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        return [*block(f"def {self.name}", self.frame.host_parameters(lines), f" -> {result}:"), *("    " + line for line in lines)]

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        record = self.body.b.exprs[expr]
        if record.op == "pick":
            return self.body.bind(scope, expr, self.frame.pick_text(scope, expr))
        kind = record.kind
        if record.is_scan:
            if self.loop is not None:
                return self.loop.scan(scope, expr)
            block_ = f"tl.where(mask_n, {self.body.text(scope, record.args[0])[0]}, {neutral(kind, record.dtype)})"
            backwards = ", reverse=True" if self.plan.backwards else ""
            return self.body.bind(scope, expr, f"tl.cum{kind}({block_}, axis={1 if self.vector else 0}{backwards})")
        return self.body.bind(scope, expr, reduced(self.body, scope, record, self.vector, frozenset(self.plan.cols)))


def reduced(body: Body, scope: Scope, record: Expr, vector: bool, cols: frozenset[int]) -> str:
    """Write a reduction over the columns of one tile."""
    (arg,), kind = record.args, record.kind
    source = body.b.exprs[arg]
    text = body.text(scope, arg)[0]
    if source.dtype == "bool" and kind is Fold.SUM:
        # 32 bits count what a tile holds
        counted = reduction_text(body, record, f"tl.where(mask_n, tl.where({text}, 1, 0), 0)", int(vector), keep=vector)
        return f"{counted}.to(tl.int64)"
    if source.dtype == "bool":
        text = f"tl.where({text}, 1, 0).to(tl.int64)"
    elif record.dtype == "int64" and source.dtype == "int32":
        text = f"({text}).to(tl.int64)"
    dtype = "int64" if source.dtype == "bool" else source.dtype
    if kind != "sum" or not vanishes(body.b, arg, cols):
        text = f"tl.where(mask_n, {text}, {neutral(kind, dtype)})"
    return reduction_text(body, record, text, int(vector), keep=vector)
