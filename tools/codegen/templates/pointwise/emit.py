"""The template of pointwise regions: one kernel, each element once.

`flat` walks the outputs as one long vector; `tile` walks rows by columns, so that operands which broadcast along either are
read once a tile. Where every operand has the outputs' shape both are the same, and `flat` is used.
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.pointwise.layout import PointwiseLayout, pointwise_layout
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, guard, never_empty, summary
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    plan = pointwise_layout(kernel)
    tile = parameters["algorithm"] == "tile" and plan.tiles
    return _Writer(kernel, name, parameters, plan, tile).write()


class _Writer:
    """Writes one pointwise region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: PointwiseLayout, tile: bool) -> None:
        self.name, self.parameters, self.tile = name, parameters, tile
        names = Names()
        self.reads = tuple(access for access in plan.accesses if not access.is_output)
        self.writes = tuple(access for access in plan.accesses if access.is_output)
        masks = {"elements": "mask"}
        if tile:
            last = plan.groups[-1]
            axes: tuple[Axis, ...] = (Axis("rows", "rows", plan.order[: -len(last)], plan.groups[:-1]), Axis("cols", "cols", last, (last,)))
            masks = {"rows": "mask_m", "cols": "mask_n"}
        else:
            axes = (Axis("elements", "offs", plan.order, plan.groups),) if plan.order else ()
        self.space = Space(kernel, axes, plan.accesses)
        self.body = Body(self.space, names, self._load, self._reduce)
        self.frame = Frame(self.space, f"{name}_kernel", names, self.reads, self.writes, self.body, masks)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        lines: list[str] = []
        scope = Scope(lines, "    ")
        for output, access in zip(self.space.kernel.outputs, self.writes, strict=True):
            self.frame.store(scope, access, self.body.assign(scope, output.expr))
        head = self._tile_head() if self.tile else self._flat_head()
        text = self.frame.finish([*head, *lines])
        kernel = [
            "@triton.jit",
            *block(f"def {self.name}_kernel", self.frame.signature(["BLOCK_M", "BLOCK_N", "BLOCK"]), ":"),
            f'    """{summary(self.space.kernel, self.reads, self.writes)}."""',
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

    def _flat_head(self) -> list[str]:
        if not self.space.axes:
            return []
        axis = self.space.axes[0]
        size = self.space.monomial(axis.atoms)
        if axis.name in self.space.parts_used:
            lines = [
                f"offs = tl.program_id(0){'.to(tl.int64)' if self.space.is_wide() else ''} * BLOCK + tl.arange(0, BLOCK)",
                f"mask = offs < {size}",
                *self.space.parts(axis),
            ]
        else:
            lines = [
                "start = tl.program_id(0).to(tl.int64) * BLOCK",
                "offs = start + tl.arange(0, BLOCK)",
                f"mask = offs < {size}",
                *self.space.parts(axis),
            ]
        return ["    " + line for line in lines]

    def _tile_head(self) -> list[str]:
        rows, cols = self.space.axes[:2]
        n_rows, n_cols = self.space.monomial(rows.atoms), self.space.monomial(cols.atoms)
        lines = [
            "pid = tl.program_id(0)",
            f"tiles_n = tl.cdiv({n_cols}, BLOCK_N)",
            f"rows = (pid // tiles_n){self.space.long(rows)} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
            f"mask_m = rows < {n_rows}",
            *self.space.parts(rows),
            "cols = (pid % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
            f"mask_n = cols < {n_cols}",
            *self.space.parts(cols),
        ]
        return ["    " + line for line in lines]

    def _host(self) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        device = self.reads[0].name
        lines = [f"{access.name} = {access.name}.contiguous()" for access in self.reads if access.may_need_copy]
        lines += [*self.frame.size_lines(known), *never_empty(self.space, [self.space.axis("cols")] if self.tile else [])]
        lines += [allocation(self.space, access, known, device) for access in self.writes]
        if self.space.takes_apart(self.space.axes[0]) if self.tile else self.space.parts_used:
            lines += guard(self.space, self.writes)
        warps = self.parameters["num_warps"]
        elements = int(self.parameters["ELEMENTS"]) * 32 * int(warps)
        constants: dict[str, object] = {}
        if self.tile:
            lines += [
                f"block_n = min(triton.next_power_of_2(n_cols), {elements})",
                f"block_m = {elements} // block_n",
                "grid = (triton.cdiv(n_rows, block_m) * triton.cdiv(n_cols, block_n),)",
            ]
            constants = {"BLOCK_M": "block_m", "BLOCK_N": "block_n"}
        elif self.space.axes:
            lines.append(f"grid = (triton.cdiv(n_elements, {elements}),)")
            constants = {"BLOCK": elements}
        else:
            lines.append("grid = (1,)")
        lines += block(f"{self.name}_kernel[grid]", [*self.frame.call_arguments(constants), f"num_warps={warps}"], "")
        lines.append("return " + ", ".join(access.name for access in self.writes))
        result = "torch.Tensor" if len(self.writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(self.writes))}]"
        return [*block(f"def {self.name}", self.frame.host_parameters(lines), f" -> {result}:"), *("    " + line for line in lines)]

    def _load(self, scope: Scope, expr: int) -> str:
        access = self.reads[self.body.b.exprs[expr].extra]
        return self.body.bind(scope, expr, self.frame.load_text(access))

    def _reduce(self, scope: Scope, expr: int) -> str:
        raise LoweringError("a pointwise region has no reductions")
