"""The two-pass kernel of long rows: both readings in one launch, so that the second finds its row in the cache.

The kernels of `split_reduction.py` become stages of one: while a row is read for its reduction, a row some way before it, whose
reduction is complete, is read again and written. Programs draw their turns from a counter, in the order in which they start, and count what
they have finished of a row; one that needs a row's partial results waits for the programs that were given them, which have started before
it and wait for none after it. So it ends whatever the number of programs that run at a time, one by one as in Triton's interpreter, too.
Waiting on the programs before one's own by such a counter: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled
Look-back, 2016. Partial results are combined in the order of the chunks: the same input gives the same bits.
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.rows.layout import RowLayout
from tools.codegen.templates.rows.partial_results import Stage
from tools.codegen.templates.rows.split_reduction import SplitWriter
from tools.codegen.templates.shared.frame import block, summary
from tools.codegen.templates.shared.iteration_space import Space
from tools.codegen.templates.shared.knob import Settings

AHEAD = 256
"""Programs whose chunks lie between two readings of a row: of 256 to 1024 the fewest were the fastest on an H200, on four norms."""
CONSTANT = ": tl.constexpr"


class L2TwoPassWriter(SplitWriter):
    """Writes the stages as functions, the kernel that takes turns with them, and its host function."""

    numbered = ()
    endings = ("partial", "again")

    def __init__(self, kernel: Kernel, name: str, parameters: Settings, plan: RowLayout) -> None:
        """Take the region and its layout."""
        super().__init__(kernel, name, parameters, plan)
        if not plan.fits_two_pass or self.vector:
            raise LoweringError("l2_two_pass is for rows that are read twice, one a program, and lie one behind the other")
        self.turns = self.partial.names.fresh("turns")

    def _stages(self) -> tuple[list[str], list[tuple[Stage, str, bool]]]:
        texts, calls = super()._stages()
        return [*texts, self._together(calls)], calls

    def _stage(self) -> Stage:
        stage = super()._stage()
        stage.frame.eviction = "evict_last"
        return stage

    def _write_final(self, stage: Stage, combined: dict[int, int | None], wide: bool) -> None:
        stage.frame.eviction = "evict_first"
        super()._write_final(stage, combined, wide)

    def _parameters(self, stage: Stage) -> list[str]:
        found = super()._parameters(stage)
        constants = [name for name in found if name.endswith(CONSTANT)]
        return [*(name for name in found if not name.endswith(CONSTANT)), "pid", *constants]

    def _together(self, calls: list[tuple[Stage, str, bool]]) -> str:
        """Write the kernel: a program's turn says which chunk of which rows it has."""
        lines = [
            "# in the order in which programs start: what one waits for is under way",
            f'turn = tl.atomic_add({self.turns}_ptr, 1, sem="relaxed")',
            "row = turn // n_splits",
        ]
        for place, (stage, name, _) in enumerate(calls):
            test = "row >= 0" if place == len(calls) - 1 else "row < n_rows" if not place else "(row >= 0) & (row < n_rows)"
            lines += ["row -= lag", "turn -= lag * n_splits"] if place else []
            lines.append(f"if {test}:")
            if place:
                wanted = "n_splits" if place == 1 else f"{place} * n_splits"
                lines += [f'    while tl.atomic_add({self.turns}_ptr + 1 + row, 0, sem="acquire") < {wanted}:', "        pass"]
            given = ["turn" if each == "pid" else each.removesuffix(CONSTANT) for each in self._parameters(stage)]
            lines += ["    " + line for line in block(name, given, "")]
            if place < len(calls) - 1:
                lines += ["    tl.debug_barrier()", f'    tl.atomic_add({self.turns}_ptr + 1 + row, 1, sem="release")']
        arrow = summary(self.kernel, self._reads(), self._writes())
        title = f'    """Reads a chunk of a row for its reduction, and one `lag` rows before it again: {arrow}."""'
        head = block(f"def {self.name}_kernel", list(self._given(calls)), ":")
        return "\n".join(["@triton.jit", *head, title, *("    " + line for line in lines)])

    def _given(self, calls: list[tuple[Stage, str, bool]]) -> dict[str, str]:
        """List the kernel's parameters, pointers first and constants last, with what the host gives for each.

        A size that one stage has compiled in is compiled in for all.
        """
        found = {name: value for stage, _, _ in reversed(calls) for name, value in self._arguments(stage).items() if name != "pid"}
        found |= {f"{self.turns}_ptr": self.turns, "n_rows": "n_rows", "n_splits": "n_splits", "lag": "lag"}
        once = {name: value for name, value in found.items() if name + CONSTANT not in found}
        return dict(sorted(once.items(), key=lambda item: (item[0].endswith(CONSTANT), not item[0].endswith("_ptr"), "=" in item[1])))

    def _tiles(self, space: Space) -> list[str]:
        return []

    def _launches(self, calls: list[tuple[Stage, str, bool]]) -> list[str]:
        behind = "lag" if len(calls) == 2 else f"{len(calls) - 1} * lag"
        return [
            f"lag = triton.cdiv({AHEAD}, n_splits)",
            f"{self.turns} = torch.zeros(1 + n_rows, dtype=torch.int32, device={self._reads()[0].name}.device)",
            *block(
                f"{self.name}_kernel[((n_rows + {behind}) * n_splits,)]",
                [*self._given(calls).values(), f"num_warps={self.parameters['num_warps']}"],
                "",
            ),
        ]
