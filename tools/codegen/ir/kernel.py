"""A lowered region: expressions, what is read and written, and the one thing in it that shapes the whole kernel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.geometry import Convolution, Depthwise, Window
from tools.codegen.ir.graph import Place, Ref, TensorMeta

if TYPE_CHECKING:
    from tools.codegen.ir.grouped import Grouped
    from tools.codegen.ir.recurrent import Recurrent

FLOATS = frozenset({"float16", "bfloat16", "float32"})
"""Dtypes that products multiply as they lie in memory."""


@dataclass(frozen=True)
class Lowered:
    """A value of the region: its expression and how its shape is made of atoms."""

    value: Value
    dims: Dims


class Write(StrEnum):
    """What is done with values that are written to positions of a tensor which holds something already."""

    STORE = "store"
    ADD = "add"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True)
class Scatter:
    """Where an output's values go: to positions, in a copy of another tensor."""

    base: Ref | None
    """What is copied first; none where the tensor holds `fill` first."""
    fill: float
    positions: tuple[int, ...]
    """Expressions: the position along each dimension of the tensor."""
    guard: int | None
    """Expression that tells whether an element is written; none where all are."""
    write: Write
    in_place: bool = False
    """Whether nobody else reads what is there before, so that it is written to, and not to a copy."""
    onto: Ref | None = None
    """The output of the same kernel that goes on from this one, where nobody else reads this: both are written to its memory."""


@dataclass(frozen=True)
class Output:
    """A tensor the kernel writes."""

    ref: Ref
    meta: TensorMeta
    expr: int
    dims: Dims
    """Of its values; a tensor that is scattered to has a shape of its own."""
    scatter: Scatter | None = None
    place: Place | None = None
    """Where it lies in a larger tensor, along whose other dimensions it is whole."""


class Triangle(StrEnum):
    """A triangle of a matrix, by torch's name for taking it."""

    LOWER = "tril"
    UPPER = "triu"


@dataclass(frozen=True)
class Contraction:
    """A matrix product inside the region: atoms of batch, rows, columns and the summed dimension."""

    left: Lowered
    right: Lowered
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    cols: tuple[int, ...]
    inner: tuple[int, ...]
    expr: int
    """The accumulator, as an expression of the epilogue."""
    triangle: Triangle | None = None
    """Which part of the result is used alone."""
    diagonal: int = 0
    dtype: str = "float32"
    """What the reference multiplies in; operands may come from shorter numbers."""
    cancels: bool = False
    """Whether terms may be far larger than their sum, which then has no digits to lose to operands in parts."""
    convolves: bool = False
    """Whether it is a convolution whose kernel has one element."""


@dataclass(frozen=True)
class Attention:
    """The second product of an attention: weights made of a contraction's scores, times values."""

    logits: int
    """What the softmax is taken of, as an expression over rows and columns of the scores."""
    value: Lowered
    wide: tuple[int, ...]
    """Atoms of one value's elements."""
    softmax: bool
    """Whether the weights are the softmax of the logits; otherwise they are the logits themselves."""
    causal: bool
    """Whether columns after the row count for nothing, so that they need not be looked at."""
    safe: bool
    """Whether a row without any finite logit gives zeros; otherwise NaN, as a plain softmax does."""
    expr: int
    """The result, as an expression of what follows."""
    dtype: str = "float32"
    """What weights and values are multiplied in."""
    sink: int | None = None
    """A logit of each row that takes a share of the weights and has no value, as an expression."""
    summed: tuple[int, int] | None = None
    """A sum along the keys that is made beside, as an expression of what follows, and what is summed; none with a softmax."""
    log_sum: int | None = None
    """The logarithm of the sum of the logits' exponentials, as an expression of what follows; only with a softmax."""


@dataclass(frozen=True)
class State:
    """A value that a loop's steps hand on, as expressions."""

    leaf: int
    """What a step is given."""
    initial: int
    after: int
    """What it gives to the next one."""
    last: int
    """What is left when the loop has ended."""
    dims: Dims


@dataclass(frozen=True)
class Recurrence:
    """A loop over one dimension: expressions that vary along it are of one step."""

    step: int
    """Atom of the dimension."""
    states: tuple[State, ...]
    backwards: bool
    inside: range = range(0)
    """Expressions that the steps' operators made."""


@dataclass(frozen=True)
class Kernel:
    """A lowered region: expressions, what is read, what is written, what is reduced."""

    builder: Builder
    outputs: tuple[Output, ...]
    reduced: tuple[int, ...]
    """Leaf atoms that every reduction of the region runs over; empty for a pointwise region."""
    contraction: Contraction | None = None
    window: Window | None = None
    attention: Attention | None = None
    depthwise: Depthwise | None = None
    convolution: Convolution | None = None
    recurrence: Recurrence | None = None
    further: tuple[Contraction, ...] = ()
    """Products besides `contraction`, over the same rows and columns."""
    grouped: Grouped | None = None
    recurrent: Recurrent | None = None
    general: bool = False
    """Whether it may read at positions that are expressions, reduce over several sets of dimensions and scatter: for tiles alone."""
    then: Kernel | None = None
    """What another kernel adds to the outputs of this one: the rest of runs that are too long for one program."""

    @property
    def contractions(self) -> tuple[Contraction, ...]:
        """All products whose elements the region's own are made of."""
        return (*((self.contraction,) if self.contraction else ()), *self.further)

    @property
    def cancels(self) -> bool:
        """Whether sums of its products do: they are added in plain float32."""
        return any(each.cancels for each in self.contractions)

    @property
    def computes_operands(self) -> bool:
        """Whether an operand of a product is made of what is read, and not read as it is, or of another dtype than the other."""
        exprs, loads = self.builder.exprs, self.builder.loads
        sides = [exprs[side.value.id] for each in self.contractions for side in (each.left, each.right)]
        return (
            any(side.op != "load" for side in sides)
            or len({loads[side.extra].meta.dtype for side in sides} - FLOATS) > 0
            or any(
                loads[exprs[each.left.value.id].extra].meta.dtype != loads[exprs[each.right.value.id].extra].meta.dtype
                for each in self.contractions
            )
        )
