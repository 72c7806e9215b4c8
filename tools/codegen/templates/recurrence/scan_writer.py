"""The kernel of a linear loop: a block of steps at once, by an associative scan, and then the next block."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.recurrence.forms import LinearState, scan_form_of
from tools.codegen.templates.recurrence.layout import RecurrenceLayout
from tools.codegen.templates.recurrence.steps_writer import StepsWriter
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Scope

STEP = "linear_step"
"""Device function that joins two neighbouring steps."""


class ScanWriter(StepsWriter):
    """Writes one loop by scans: a step of a state is its factor and what is added, and two steps are one such step."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: RecurrenceLayout) -> None:
        """Take what the steps writer takes."""
        super().__init__(kernel, name, parameters, plan)
        self.form = scan_form_of(kernel)

    def tile_of(self, plan: RecurrenceLayout) -> tuple[Axis, ...]:
        """List the axes of a tile: steps, then rows."""
        return (next(axis for axis in plan.axes if axis.name == "steps"), *plan.tile)

    def _steps(self, scope: Scope) -> None:
        steps = self.space.axis("steps")
        n_steps = self.space.monomial(steps.atoms)
        scope.say(f"for start in tl.range(0, {n_steps}, CHUNK, num_stages=STAGES):")
        loop = scope.nested()
        loop.say(f"off_t = start + tl.arange(0, CHUNK){self._suffix(self.tile[0])}")
        loop.say(f"mask_t = off_t < {n_steps}")
        loop.say(f"step = {n_steps} - 1 - off_t" if self.loop.backwards else "step = off_t")
        names = [self._scanned(loop, one) for one in self.form]
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            if not self._ends(output.expr):
                self.frame.store(loop, access, self.body.assign(loop, output.expr))
        for one, name in zip(self.form, names, strict=True):
            state = self.body.name_of(one.state.leaf)
            # steps beyond the last change nothing, so that the last row of a block is what it hands on
            loop.say(f"{state} = tl.sum(tl.where(off_t == start + CHUNK - 1, {name}, 0.0), axis=0, keep_dims=True)")

    def _scanned(self, loop: Scope, one: LinearState) -> str:
        """Write the values of a state after each step of a block."""
        shape = "[" + ", ".join(["CHUNK", *(self._block(axis) for axis in self.tile[1:])]) + "]"
        words = ("factor", "added", "reach", "after")
        factor, added, reach, name = words if one is self.form[0] else map(self.body.names.fresh, words)
        for text, expr, idle in ((factor, one.factor, "1.0"), (added, one.added, "0.0")):
            loop.say(f"{text} = tl.zeros({shape}, tl.float32) + tl.where(mask_t, {self.body.text(loop, expr)[0]}, {idle})")
        self.body.helpers[STEP] = None
        loop.say(f"{reach}, {name} = tl.associative_scan(({factor}, {added}), 0, {STEP})")
        loop.say(f"{name} = {name} + {reach} * {self.body.name_of(one.state.leaf)}")
        loop.names[one.state.after] = name
        return name
