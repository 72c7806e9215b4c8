"""The kernel of a loop that carries a matrix: a chunk of steps at once, by matrix products, and the matrix from chunk to chunk.

Within a chunk a query meets the keys of the steps up to its own, each decayed by the product of the factors between the two. These products
are running products of the factors themselves: no logarithm, no quotient, so that a factor may be zero or negative and nothing overflows
that the loop would not.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.recurrence.forms import matrix_form_of
from tools.codegen.templates.recurrence.layout import LEAST, RecurrenceLayout
from tools.codegen.templates.recurrence.steps_writer import StepsWriter
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Scope


class ChunkWriter(StepsWriter):
    """Writes one loop in chunks: tiles are steps by what is summed, or steps by rows."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: RecurrenceLayout) -> None:
        """Take what the steps writer takes."""
        super().__init__(kernel, name, parameters, plan)
        form = matrix_form_of(kernel)
        if form is None:
            raise LoweringError("the loop carries no matrix that queries read")
        self.form = form

    def tile_of(self, plan: RecurrenceLayout) -> tuple[Axis, ...]:
        """List the axes of tiles: steps lie down, rows and what is summed across."""
        return (next(axis for axis in plan.axes if axis.name == "steps"), *plan.tile)

    def place_of(self, axis: Axis) -> int:
        """Tell which dimension of a tile an axis is."""
        return int(axis.name != "steps")

    @property
    def rows(self) -> int:
        """Rows of a tile: what a product needs at least."""
        return max(LEAST, super().rows)

    @property
    def rank(self) -> int:
        """Dimensions of a tile."""
        return 2

    def block_size(self, axis: Axis) -> str:
        """Write how much of a held axis a tile has: all of it, and what a product needs at least."""
        return f"max({LEAST}, {super().block_size(axis)})"

    def _before(self, scope: Scope) -> None:
        initial = self.form.state.initial
        varies = self.body.b.exprs[initial].op != "const"
        self._turn_over(scope, varies)
        text, _ = self.body.text(scope, initial)
        mask = "mask_h0 & mask_m" if varies else "tl.trans(mask_h0) & mask_m"
        name = self.body.name_of(self.form.state.leaf)
        scope.say(f"{name} = tl.zeros([BLOCK_H0, BLOCK_M], tl.float32) + tl.where({mask}, {text}, 0.0)")
        self._turn_over(scope, varies)

    def _turn_over(self, scope: Scope, needed: bool) -> None:
        """Lay what is summed down, as the matrix has it, or across again."""
        if needed:
            scope.say("off_h0 = tl.trans(off_h0)")
            scope.say("mask_h0 = tl.trans(mask_h0)")

    def _steps(self, scope: Scope) -> None:
        n_steps, state = self.space.monomial(self.space.axis("steps").atoms), self.body.name_of(self.form.state.leaf)
        down, across = "tl.arange(0, CHUNK)[:, None]", "tl.arange(0, CHUNK)[None, :]"
        scope.say(f"for start in tl.range(0, {n_steps}, CHUNK, num_stages=STAGES):")
        loop = scope.nested()
        loop.say(f"off_t = start + {down}")
        loop.say(f"mask_t = off_t < {n_steps}")
        loop.say(f"step = {n_steps} - 1 - off_t" if self.loop.backwards else "step = off_t")
        # factors, keys and values of steps beyond the last change nothing
        loop.say(f"factor = tl.zeros([CHUNK, 1], tl.float32) + tl.where(mask_t, {self.body.text(loop, self.form.factor)[0]}, 1.0)")
        loop.say(f"keys = {self._product(loop, self.form.keys, 'mask_h0', 'BLOCK_H0')}")
        loop.say(f"values = {self._product(loop, self.form.values, 'mask_m', 'BLOCK_M')}")
        loop.say(f"between = tl.cumprod(tl.where({down} > {across}, factor, 1.0), axis=0)")
        # no scan of a column: Triton 3.6 takes it for as wide as the tiles it meets, and ends in an assertion
        loop.say(f"first = tl.sum(tl.where({down} == 0, factor, 0.0), axis=0, keep_dims=True)")
        loop.say(f"since_start = first * tl.sum(tl.where({across} == 0, between, 0.0), axis=1, keep_dims=True)")
        for expr, queries in self.form.reads.items():
            name = self.body.name_of(expr)
            loop.say(f"queries = {self._product(loop, queries, 'mask_h0', 'BLOCK_H0')}")
            loop.say(f"scores = {self._dot('queries', 'tl.trans(keys)')}")
            loop.say(f"scores = tl.where({down} >= {across}, scores * between, 0.0)")
            loop.say(f"{name} = {self._dot('scores', 'values')} + {self._dot('queries * since_start', state)}")
            loop.names[expr] = name
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            if not self._ends(output.expr):
                self.frame.store(loop, access, self.body.assign(loop, output.expr))
        loop.say(f"to_end = tl.sum(tl.where({down} == CHUNK - 1, between, 0.0), axis=0, keep_dims=True)")
        loop.say(f"whole = tl.sum(tl.where({down} == CHUNK - 1, since_start, 0.0), axis=0, keep_dims=True)")
        loop.say(f"{state} = {state} * whole + {self._dot('tl.trans(keys) * to_end', 'values')}")

    def _product(self, loop: Scope, factors: Sequence[int], mask: str, block: str) -> str:
        """Write the product of factors over a tile, zero outside of it."""
        texts = [self.body.text(loop, factor, top=False)[0] for factor in factors]
        text = " * ".join(f"({each})" if " " in each else each for each in texts) or "1.0"
        return f"tl.zeros([CHUNK, {block}], tl.float32) + tl.where(mask_t & {mask}, {text}, 0.0)"

    def _dot(self, left: str, right: str) -> str:
        return f'tl.dot({left}, {right}, input_precision="{self.parameters["precision"]}")'

    def _after(self, scope: Scope) -> None:
        ends = any(self._ends(output.expr) for output in self.space.kernel.outputs)
        self._turn_over(scope, ends)
        super()._after(scope)
