"""Partial results of rows that several programs share: the buffers they lie in, and what puts them together again."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.expr import Fold
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.rows.layout import RowLayout
from tools.codegen.templates.rows.multi_pass import LoopWriter
from tools.codegen.templates.rows.online import extremum_of
from tools.codegen.templates.rows.online_pairs import NOWHERE
from tools.codegen.templates.shared.frame import Frame, neutral
from tools.codegen.templates.shared.naming import Names, Scope

HELD_PARTS = 4096
"""Partial results that a program puts together at most, where it has nothing else to do: 32 rows of 1024 took 20 µs in one program of four
warps, which held them in memory (an H100, 2026-11-26; level 3, problem 8 of KernelBench)."""


def ending_rows(rows: int, splits: int) -> int:
    """Rows of a program that only combines, of `rows` that one has which walks them."""
    return max(1, min(rows, HELD_PARTS // splits))


@dataclass
class Stage:
    """One kernel of the sequence."""

    frame: Frame
    loop: LoopWriter
    lines: list[str]
    parts: dict[int, str]
    """Partial results it reads or writes: reduction to buffer name."""
    reads_columns: bool


class PartialResults:
    """Names the buffers of one region, and writes how later stages combine what lies in them."""

    def __init__(self, kernel: Kernel, plan: RowLayout, vector: bool) -> None:
        """Take the region and its layout; `vector` says whether a program has several rows."""
        self.kernel, self.plan, self.vector = kernel, plan, vector
        self.buffers: dict[int, str] = {}
        """By reduction."""
        self.names = Names(access.name for access in plan.accesses)

    def buffer(self, stage: Stage, expr: int) -> str:
        """Name the buffer of a reduction, and note that the stage uses it."""
        if expr not in self.buffers:
            self.buffers[expr] = self.names.fresh(f"{stage.frame.body.name_of(expr)}_parts".replace("__", "_"))
        stage.parts[expr] = self.buffers[expr]
        return self.buffers[expr]

    def row(self, stage: Stage) -> str:
        """Write where the results of a program's rows begin, as the start of a sum."""
        if not self.plan.rows:
            return ""
        if not self.vector:
            return "row * n_splits + "
        if not self.has_outer(stage):
            return "rows * n_splits + "
        n_rows = stage.frame.space.monomial(stage.frame.space.axis("rows").atoms)
        return f"(outer * {n_rows} + rows) * n_splits + "

    @staticmethod
    def has_outer(stage: Stage) -> bool:
        """Whether rows are counted in two dimensions."""
        return any(axis.name == "outer" for axis in stage.frame.space.axes)

    def combine(self, stage: Stage, scope: Scope, combined: dict[int, int | None], roots: list[int]) -> None:
        """Write what puts the earlier levels' partial results together, as far as this stage rests on them."""
        needed = set(stage.loop.reductions(roots))
        for first, second in combined.items():
            if first not in needed and second not in needed:
                continue
            if not stage.parts:
                scope.say(f"parts = tl.arange(0, SPLITS){'[None, :]' if self.vector else ''}")
                scope.say("mask_s = parts < n_splits")
            if self.kernel.builder.exprs[first].is_scan:
                self._combine_before(stage, scope, first)
            elif second is None:
                self._combine_one(stage, scope, first)
            else:
                self._combine_pair(stage, scope, first, second)

    def _load_parts(self, stage: Stage, expr: int, other: str, mask: str = "mask_s") -> str:
        mask = f"{mask} & mask_m" if self.vector else mask
        return f"tl.load({self.buffer(stage, expr)}_ptr + {self.row(stage)}parts, mask={mask}, other={other})"

    def _combine_before(self, stage: Stage, scope: Scope, expr: int) -> None:
        """Write what a scan starts from in this chunk."""
        record, name = self.kernel.builder.exprs[expr], stage.frame.names.fresh(f"{stage.frame.body.name_of(expr)}_before")
        mask = "(mask_s & (parts > split))" if self.plan.backwards else "(parts < split)"
        found = self._load_parts(stage, expr, neutral(record.kind, record.dtype), mask if self.vector else mask[1:-1])
        scope.say(f"{name} = {stage.loop.whole(expr, found)}")
        stage.loop.carries[expr] = name

    def _combine_one(self, stage: Stage, scope: Scope, expr: int) -> None:
        record = self.kernel.builder.exprs[expr]
        found = self._load_parts(stage, expr, neutral(record.kind, record.dtype))
        stage.frame.body.bind(scope, expr, stage.loop.whole(expr, found))

    def _combine_pair(self, stage: Stage, scope: Scope, first: int, second: int) -> None:
        body, axis, names = stage.frame.body, stage.loop.axis, stage.frame.names
        one, two = names.fresh("first_parts"), names.fresh("second_parts")
        exprs = self.kernel.builder.exprs
        if exprs[second].reduces(Fold.MIN):
            scope.say(f"{one} = {self._load_parts(stage, first, neutral(exprs[first].kind, exprs[first].dtype))}")
            scope.say(f"{two} = {self._load_parts(stage, second, NOWHERE)}")
            extremum_of(stage.loop, scope, (first, second), (one, two))
            return
        softmax = exprs[first].reduces(Fold.MAX)
        scope.say(f"{one} = {self._load_parts(stage, first, neutral(Fold.MAX if softmax else Fold.SUM, 'float32'))}")
        scope.say(f"{two} = {self._load_parts(stage, second, '0.0')}")
        if softmax:
            peak = body.bind(scope, first, stage.loop.whole(first, one))
            scope.say(f'anchor = tl.where({peak} == -float("inf"), 0.0, {peak})')
            body.bind(scope, second, f"tl.sum({two} * tl.exp({one} - anchor), {axis})")
            return
        steps = stage.loop.steps
        n_cols = steps.columns()
        count, spread = names.fresh("part_count"), names.fresh("spread")
        total = body.bind(scope, first, f"tl.sum({one}, {axis})")
        if steps.in_pieces:
            scope.say("first = parts * chunk")
            scope.say(f"last = tl.minimum(first + chunk, {steps.whole()})")
            scope.say(f"{count} = tl.maximum({steps.part_columns('first', 'last')}, 1)")
        else:
            scope.say(f"{count} = tl.maximum(tl.minimum({n_cols} - parts * chunk, chunk), 1)")
        scope.say(f"{spread} = tl.where(mask_s, {one} / {count} - {total} / {n_cols}, 0.0)")
        body.bind(scope, second, f"tl.sum({two} + {count} * {spread} * {spread}, {axis})")
