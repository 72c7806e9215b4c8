"""The iteration space of a loop: independent sequences, the steps, and the dimensions that a program must hold whole.

Held is what a step sums over, or turns: the features of a state that a matrix multiplies. All other dimensions are sequences of their own;
the last of them that lie together in memory are `rows`, a tile of which one program walks, and the rest are `outer`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel, Recurrence
from tools.codegen.ir.sizes import power_of_two, product
from tools.codegen.ir.values.reach import made_of
from tools.codegen.templates.device.matrices import MATRICES
from tools.codegen.templates.shared.access import Access, accesses_of, coalesce
from tools.codegen.templates.shared.axis_order import memory_order
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names

MOST_HELD = 1 << 16
"""Elements that a program may hold with one row: its largest tile, and what it loads once for all steps."""
LEAST = 16
"""Rows, columns and summed elements that a product of tiles has at least."""
MOST_AXES = 6
"""Dimensions that are held at once: rows, columns and sums of matrices of two sizes."""
OWN_NAMES = (
    "added", "after", "between", "factor", "first", "keys", "mask_t", "off_t", "queries", "reach", "scores", "since_start", "to_end",
    "values", "whole",
    "batch", "i", "n_outer", "step", "tiles_m", *(f"off_h{place}" for place in range(MOST_AXES)),
)  # fmt: skip
"""Variables of the template, which no tensor may be called."""


@dataclass(frozen=True)
class RecurrenceLayout:
    """How a loop lies in memory."""

    accesses: tuple[Access, ...]
    axes: tuple[Axis, ...]
    """`outer` and `rows`, if any, `steps`, and `held_0`, `held_1`, …"""
    step: int
    tile: tuple[Axis, ...]
    """The axes of a program's tile, in order: rows, then what is held."""
    sizes: dict[str, int]
    """Positions along each axis, at the sizes as written."""
    largest: int
    """Elements that a program holds with one row."""

    def space(self, kernel: Kernel) -> Space:
        """Make the space of one emission."""
        return Space(kernel, tuple(replace(axis) for axis in self.axes), self.accesses)

    def size(self, name: str) -> int:
        """Positions along an axis; 1 where there is none."""
        return self.sizes.get(name, 1)

    @property
    def held(self) -> tuple[Axis, ...]:
        """What a program holds whole."""
        return tuple(axis for axis in self.axes if axis.name.startswith("held"))


def recurrence_layout(kernel: Kernel) -> RecurrenceLayout:
    """Lay out a loop; raises LoweringError."""
    recurrence, builder = kernel.recurrence, kernel.builder
    if recurrence is None:
        raise LoweringError("there is no loop")
    if builder.joins:
        raise LoweringError("a loop and a concatenation do not share a kernel")
    if kernel.reduced:
        _check_outside(kernel, recurrence)
    refs = [load.ref for load in builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    steps = builder.atoms.leaves((recurrence.step,))
    if len(steps) != 1:
        raise LoweringError("the steps of a loop are cut into parts")
    held = _held(kernel, recurrence)
    if steps[0] in held:
        raise LoweringError("a sum over the steps does not share a kernel with their loop")
    every = {atom for access in accesses for atom in access.strides} | set(held)
    order = memory_order([atom for atom in every if atom not in held and atom != steps[0]], accesses)
    groups = coalesce(order, accesses)
    axes = [Axis("outer", "batch", tuple(a for group in groups[:-1] for a in group), groups[:-1])] if groups[:-1] else []
    rows = [Axis("rows", "off_m", groups[-1], groups[-1:])] if groups else []
    whole = [Axis(f"held_{place}", f"off_h{place}", (atom,), ((atom,),)) for place, atom in enumerate(held)]
    axes += [*rows, Axis("steps", "step", steps, (steps,)), *whole]
    sizes = {axis.name: product((builder.atoms.size(atom) for atom in axis.atoms), builder.atoms.traces)[0] for axis in axes}
    if len(held) > MOST_AXES:
        raise LoweringError(f"a step holds {len(held)} dimensions at once, more than {MOST_AXES}")
    largest = _largest(kernel, recurrence, held) + _loaded_once(kernel, held, steps[0])
    if largest > MOST_HELD:
        raise LoweringError(f"a step holds {largest} elements at once, more than registers can ({MOST_HELD})")
    return RecurrenceLayout(accesses, tuple(axes), steps[0], (*rows, *whole), sizes, largest)


def _check_outside(kernel: Kernel, recurrence: Recurrence) -> None:
    """Make sure that reductions around a loop run along what its steps hold, and are the same at every step."""
    builder = kernel.builder
    held = _held_by(kernel, [state.after for state in recurrence.states])
    if not set(kernel.reduced) <= set(held):
        raise LoweringError("a loop and a reduction along what its steps do not hold do not share a kernel")
    roots = (*roots_of(kernel, recurrence), *(state.initial for state in recurrence.states))
    steps = set(builder.atoms.leaves((recurrence.step,)))
    for place in made_of(builder, *roots):
        expr = builder.exprs[place]
        if expr.along and place not in recurrence.inside and steps & set(builder.atoms.leaves(tuple(builder.exprs[expr.args[0]].atoms))):
            raise LoweringError("a loop and a reduction for each of its steps do not share a kernel")


def roots_of(kernel: Kernel, recurrence: Recurrence) -> tuple[int, ...]:
    """List what a loop and its region compute."""
    return (*(output.expr for output in kernel.outputs), *(state.after for state in recurrence.states))


def _held(kernel: Kernel, recurrence: Recurrence) -> tuple[int, ...]:
    """List the atoms that a step sums over, scans or turns, in the order of their expressions."""
    return _held_by(kernel, roots_of(kernel, recurrence))


def _held_by(kernel: Kernel, roots: Sequence[int]) -> tuple[int, ...]:
    builder, found = kernel.builder, dict[int, None]()
    for place in sorted(made_of(builder, *roots)):
        expr = builder.exprs[place]
        if expr.op in ("reduce", "scan", *MATRICES):
            found |= dict.fromkeys(builder.atoms.leaves(expr.extra))
        elif expr.op == "turn":
            there, here = (builder.atoms.leaves((atom,)) for atom in expr.extra)
            if there != here:
                found |= dict.fromkeys((*there, *here))
    return tuple(found)


def _largest(kernel: Kernel, recurrence: Recurrence, held: tuple[int, ...]) -> int:
    builder = kernel.builder
    most = 1
    for place in made_of(builder, *roots_of(kernel, recurrence)):
        own = set(builder.atoms.leaves(tuple(builder.exprs[place].atoms))) & set(held)
        count = 1
        for atom in own:
            count *= power_of_two(builder.atoms.size(atom)[0])
        most = max(most, count)
    return most


def _loaded_once(kernel: Kernel, held: tuple[int, ...], step: int) -> int:
    """Count the elements of weights: what is the same at every step and for every row."""
    atoms, count = kernel.builder.atoms, 0
    for load in kernel.builder.loads:
        own = atoms.leaves(atom for dim in load.dims for atom in dim)
        if len(own) > 1 and set(own) <= set(held) and step not in own:
            count += math.prod(power_of_two(atoms.size(atom)[0]) for atom in own)
    return count


recurrence_layout_of = kept(recurrence_layout)
"""The layout of a kernel, made once."""
