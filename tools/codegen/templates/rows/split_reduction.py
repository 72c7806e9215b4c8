"""Split reductions of few long rows: several programs a row, each with a chunk of its columns.

One kernel a level of reductions writes partial results, one for each row and chunk; the next kernel combines them (every
program does, from a few hundred numbers) and goes on. A scan needs the sum or product of each chunk first; the last kernel starts
from those of the chunks before its own. Nothing is added atomically: the same input gives the same bits.
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.rows.layout import RowLayout
from tools.codegen.templates.rows.multi_pass import LoopWriter
from tools.codegen.templates.rows.partial_results import PartialResults, Stage, ending_rows
from tools.codegen.templates.rows.row_index import row_lines, row_masks, row_steps, row_tiles
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame, RegionText, allocation, block, guard, never_empty, summary
from tools.codegen.templates.shared.iteration_space import Space
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.naming import Names, Scope


class SplitWriter:
    """Writes the kernels and the host function of a split row region."""

    numbered: tuple[str, ...] = ("pid = tl.program_id(0)",)
    """How the code of a stage learns which program it is."""
    endings = ("partial_kernel", "kernel")
    """What the functions of partial results and of the last stage are called after the region's name."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: RowLayout) -> None:
        """Take the region and its layout."""
        self.kernel, self.name, self.parameters, self.plan = kernel, name, parameters, plan
        if plan.chained:
            raise LoweringError("a scan that something along the row waits for is not split over programs")
        self.vector = int(parameters["ROWS"]) > 1 and bool(plan.rows)
        self.partial = PartialResults(kernel, plan, self.vector)
        self.helpers: dict[str, None] = {}

    def write(self) -> RegionText:
        """Write every stage and the host function."""
        texts, calls = self._stages()
        return RegionText(
            self.name,
            tuple(access.ref for access in self._reads()),
            tuple(access.ref for access in self._writes()),
            "\n\n\n".join([*texts, "\n".join(self._host(calls))]),
            tuple(self.helpers),
            tuple({name: number for stage, _, _ in calls for name, number in stage.frame.given.items()}.values()),
        )

    def _stages(self) -> tuple[list[str], list[tuple[Stage, str, bool]]]:
        """Write the functions of all stages; with each its name, and whether it has a program a chunk."""
        levels = self._stage().loop.levels(merged=True)
        texts: list[str] = []
        calls: list[tuple[Stage, str, bool]] = []
        combined: dict[int, int | None] = {}
        for place, (plain, pairs) in enumerate(levels):
            stage = self._stage()
            name = f"{self.name}_{self.endings[0]}" if len(levels) == 1 else f"{self.name}_{self.endings[0]}_{place}"
            self._write_partial(stage, plain, pairs, combined)
            texts.append(self._kernel_text(stage, name, "Partial results of one chunk of a row"))
            calls.append((stage, name, True))
            combined.update(dict.fromkeys(plain))
            combined.update(pairs)
        stage = self._stage()
        wide = not self.plan.early and any(set(access.strides) & set(self.plan.cols) for access in self._writes())
        self._write_final(stage, combined, wide)
        name = f"{self.name}_{self.endings[1]}"
        texts.append(
            self._kernel_text(stage, name, "Combines the partial results" + (", then goes through one chunk of a row" if wide else ""))
        )
        calls.append((stage, name, wide))
        return texts, calls

    def _reads(self) -> tuple[Access, ...]:
        return tuple(access for access in self.plan.accesses if not access.is_output)

    def _writes(self) -> tuple[Access, ...]:
        return tuple(access for access in self.plan.accesses if access.is_output)

    def _stage(self) -> Stage:
        space = self.plan.space(self.kernel, self.vector, looped=True)
        lines: list[str] = []

        def load(scope: Scope, expr: int) -> str:
            access = self._reads()[self.kernel.builder.exprs[expr].extra]
            return body.bind(scope, expr, frame.load_text(access))

        def reduce(scope: Scope, expr: int) -> str:
            if body.b.exprs[expr].is_scan:
                return loop.scan(scope, expr)
            if body.b.exprs[expr].op != "pick":
                raise AssertionError("a reduction is combined before it is read")
            return body.bind(scope, expr, frame.pick_text(scope, expr))

        body = Body(space, Names(["split", "n_splits", "chunk", "begin", "end", "SPLITS"]), load, reduce)
        steps = row_steps(space, self.plan, self.parameters, self.vector, chunked=True)
        frame = Frame(space, self.name, body.names, self._reads(), self._writes(), body, row_masks(steps))
        loop = LoopWriter(frame, steps, self.parameters, self.plan.early)
        return Stage(frame, loop, lines, {}, reads_columns=True)

    def _write_partial(self, stage: Stage, plain: list[int], pairs: dict[int, int], combined: dict[int, int | None]) -> None:
        scope = Scope(stage.lines, "    ")
        below = [arg for expr in (*plain, *pairs) for arg in self.kernel.builder.exprs[expr].args]
        self.partial.combine(stage, scope, combined, below)
        stage.loop.walk(scope, plain, pairs, first=not combined)
        mask = ", mask=mask_m" if self.vector else ""
        for expr in (*plain, *(each for pair in pairs.items() for each in pair)):
            buffer = self.partial.buffer(stage, expr)
            scope.say(f"tl.store({buffer}_ptr + {self.partial.row(stage)}split, {scope.find(expr)}{mask})")

    def _write_final(self, stage: Stage, combined: dict[int, int | None], wide: bool) -> None:
        scope = Scope(stage.lines, "    ")
        self.partial.combine(stage, scope, combined, [output.expr for output in self.kernel.outputs])
        narrow = any(not set(access.strides) & set(self.plan.cols) for access in self._writes())
        stage.reads_columns = wide
        stage.loop.stores(scope, "split == 0" if wide and narrow else "")

    def _kernel_text(self, stage: Stage, name: str, words: str) -> str:
        self.helpers.update(stage.frame.body.helpers)
        space = stage.frame.space
        if stage.reads_columns:
            head = [*self.numbered, "split = pid % n_splits", *row_lines(space, self.plan, self.vector, "(pid // n_splits)")]
            head += [*stage.loop.steps.opening(), *stage.loop.steps.bounds()]
        else:
            head = [*row_lines(space, self.plan, self.vector, "tl.program_id(0)"), *stage.loop.steps.opening()]
        text = stage.frame.finish([*("    " + line for line in head), *stage.lines])
        touched = stage.frame.tensors()
        arrow = summary(self.kernel, [a for a in touched if not a.is_output], [a for a in touched if a.is_output])
        words = f"{words}: {arrow.removesuffix(' -> ').removeprefix(' -> ')}"
        return "\n".join(["@triton.jit", *block(f"def {name}", self._parameters(stage), ":"), f'    """{words}."""', *text])

    def _extra(self, stage: Stage) -> list[str]:
        """List the buffers of partial results and the sizes of the split that a stage uses, as they are called on the host."""
        buffers = [name for name in stage.parts.values() if f"{name}_ptr" in stage.frame.used]
        return [*buffers, *(name for name in ("n_splits", "chunk") if name in stage.frame.used)]

    def _parameters(self, stage: Stage) -> list[str]:
        extra = [name if name in ("n_splits", "chunk") else f"{name}_ptr" for name in self._extra(stage)]
        own = stage.frame.signature([])
        count = len(stage.frame.tensors())
        constants = [f"{name}: tl.constexpr" for name in ("ROWS", "SPLITS", "UNROLL", "BLOCK_N") if name in stage.frame.used]
        return [*own[:count], *extra, *own[count:], *constants]

    def _arguments(self, stage: Stage) -> dict[str, str]:
        """Write what the host gives for each parameter of a stage; constants by name."""
        own = dict(zip(stage.frame.signature([]), stage.frame.call_arguments({}), strict=True))
        given = own | {name: name.removesuffix("_ptr") for name in self._parameters(stage) if name not in own}
        constants = {
            "ROWS": self._rows(stage),
            "SPLITS": "triton.next_power_of_2(n_splits)",
            "UNROLL": stage.loop.steps.blocks_a_step,
            "BLOCK_N": "block_n",
        }
        named = {f"{key}: tl.constexpr": f"{key}={value}" for key, value in constants.items()}
        return {name: (given | named)[name] for name in self._parameters(stage)}

    def _rows(self, stage: Stage) -> int:
        """Rows of one program of a stage: of the last one fewer, where all that it does is to combine."""
        rows = int(self.parameters["ROWS"])
        return rows if stage.reads_columns else ending_rows(rows, int(self.parameters["SPLITS"]))

    def _launches(self, calls: list[tuple[Stage, str, bool]]) -> list[str]:
        warps = f"num_warps={self.parameters['num_warps']}"
        return [
            line
            for stage, name, wide in calls
            for line in block(f"{name}[({self._programs(stage, wide)},)]", [*self._arguments(stage).values(), warps], "")
        ]

    def _programs(self, stage: Stage, wide: bool) -> str:
        rows = self._rows(stage)
        if wide or rows == self.parameters["ROWS"]:
            return "tiles * n_splits" if wide else "tiles"
        return row_tiles(stage.frame.space, self.plan, self.vector, rows)

    def _tiles(self, space: Space) -> list[str]:
        """Write how many programs cover all rows."""
        return [f"tiles = {row_tiles(space, self.plan, self.vector, int(self.parameters['ROWS']))}"]

    def _host(self, calls: list[tuple[Stage, str, bool]]) -> list[str]:
        known: dict[str, tuple[int, ...]] = {}
        first = calls[0][0]
        space = first.frame.space
        reads, writes = self._reads(), self._writes()
        lines = [f"{access.name} = {access.name}.contiguous()" for access in reads if access.may_need_copy]
        for axis in space.axes:
            space.used.setdefault(axis.size_name, axis.atoms)
        for stage, _, _ in calls:
            lines += stage.frame.size_lines(known)
        lines += never_empty(space, [space.axis("cols")])
        lines.append(f"block_n = min(triton.next_power_of_2(n_cols), {self.parameters['BLOCK_N']})")
        if first.loop.steps.in_pieces:
            lines += [
                "n_blocks = n_steps * triton.cdiv(n_cols, block_n)",
                f"chunk = triton.cdiv(n_blocks, {self.parameters['SPLITS']})",
                "n_splits = triton.cdiv(n_blocks, chunk)",
            ]
        else:
            lines += [
                f"chunk = triton.cdiv(triton.cdiv(n_cols, {self.parameters['SPLITS']}), block_n) * block_n",
                "n_splits = triton.cdiv(n_cols, chunk)",
            ]
        lines += self._tiles(space)
        total = "1" if not self.plan.rows else "n_outer * n_rows" if self.partial.has_outer(first) else "n_rows"
        exprs = self.kernel.builder.exprs
        lines += [
            f"{name} = torch.empty(({total}, n_splits), dtype=torch.{exprs[expr].dtype}, device={reads[0].name}.device)"
            for expr, name in self.partial.buffers.items()
        ]
        lines += [allocation(space, access, known, reads[0].name) for access in writes]
        if not self.plan.inner_reduction:
            lines += guard(space, reads[:1])
        elif self.vector and self.plan.rows and space.takes_apart(space.axis("rows")):
            lines += guard(space, (*reads, *writes))
        lines += self._launches(calls)
        lines.append("return " + ", ".join(access.name for access in writes))
        result = "torch.Tensor" if len(writes) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(writes))}]"
        parameters = list(dict.fromkeys(each for stage, _, _ in calls for each in stage.frame.host_parameters(lines)))
        return [*block(f"def {self.name}", parameters, f" -> {result}:"), *("    " + line for line in lines)]
