"""Tiles of what a product multiplies, where they are computed from what is read and not only read.

A tile is written at other positions than the rows and columns of the result: `along` says which variables hold them. What does not vary
along the loop is written before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import LoweringError
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.frame import Frame
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.naming import Scope

Places = Mapping[str, tuple[str, str]]
"""By axis: the variable of the position along it, and its mask; no mask where none is needed."""


class OperandTiles:
    """Writes operands of one kernel."""

    def __init__(self, frame: Frame, body: Body) -> None:
        """Take the kernel being written."""
        self.frame, self.body, self.space, self.b = frame, body, frame.space, body.b

    @contextmanager
    def along(self, places: Places) -> Iterator[None]:
        """Take positions and masks from other variables; expressions get other names while that lasts."""
        axes = {axis.name: axis for axis in self.space.axes if axis.name in places}
        indices, masks, names = {name: axis.index for name, axis in axes.items()}, self.frame.masks, self.body.variables
        self.frame.masks = {**masks, **{name: mask for name, (_, mask) in places.items()}}
        self.frame.masks = {name: mask for name, mask in self.frame.masks.items() if mask}
        self.body.variables = {}
        for name, axis in axes.items():
            axis.index = places[name][0]
        try:
            yield
        finally:
            self.frame.masks, self.body.variables = masks, names
            for name, axis in axes.items():
                axis.index = indices[name]

    def parts(self, scope: Scope, *axes: Axis) -> None:
        """Write the statements that take positions apart; those that nothing reads are dropped later."""
        for axis in axes:
            if len(axis.groups) > 1:
                self.space.parts_used.add(axis.name)
            for line in self.space.parts(axis):
                scope.say(line)

    def before(self, scope: Scope, expr: int, atoms: frozenset[int]) -> None:
        """Write, ahead of a loop, those parts of an expression that do not vary along the loop's atoms."""
        record = self.b.exprs[expr]
        if record.op in ("const", "size", "argument") or scope.find(expr) is not None:
            return
        if not set(self.b.atoms.leaves(tuple(record.atoms))) & atoms:
            self.body.assign(scope, expr)
            return
        for arg in record.args:
            self.before(scope, arg, atoms)

    def tile(self, scope: Scope, expr: int, dtype: str, summed: frozenset[int], mask: str) -> str:
        """Write one tile in the dtype of its product; past the end of the sum it is zero."""
        rest = self._unrounded(expr, dtype)
        record = self.b.exprs[rest]
        if record.op == "load":
            access = self.frame.reads[record.extra]
            if access.meta.dtype != "bool":
                text = self.frame.raw_load_text(access)
                return text if access.meta.dtype == dtype else f"{text}.to(tl.{dtype})"
        text = self.body.assign(scope, rest)
        if mask and not vanishes(self.b, rest, summed):
            text = f"tl.where({mask}, {text}, 0.0)"
        return f"{text if text.isidentifier() or text.endswith(')') else f'({text})'}.to(tl.{dtype})"

    def _unrounded(self, expr: int, dtype: str) -> int:
        """Leave out casts that the product's dtype makes, or that a wider one does not notice."""
        record = self.b.exprs[expr]
        while record.op == "cast" and record.extra in (dtype, "float32") and self.b.exprs[record.args[0]].dtype in ("float32", "int32"):
            expr = record.args[0]
            record = self.b.exprs[expr]
        return expr


def vanishes(b: Builder, expr: int, summed: frozenset[int]) -> bool:
    """Whether an expression is zero wherever its loads along the sum are masked off."""
    record = b.exprs[expr]
    varying = [arg for arg in record.args if set(b.atoms.leaves(tuple(b.exprs[arg].atoms))) & summed]
    if record.op in ("load", "read"):
        return bool(set(b.atoms.leaves(tuple(record.atoms))) & summed)
    if record.op in ("mul", "bitand"):
        return any(vanishes(b, arg, summed) for arg in varying)
    if record.op in ("abs", "neg", "cast", "shift_right"):
        return vanishes(b, record.args[0], summed)
    if record.op in ("add", "sub"):
        return len(varying) == len(record.args) and all(vanishes(b, arg, summed) for arg in varying)
    return False


def no_reductions(scope: Scope, expr: int) -> str:
    """Refuse what a product's kernel has not."""
    raise LoweringError("a product's region has no reductions")
