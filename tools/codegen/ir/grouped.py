"""What experts do, as products over rows that are sorted by expert: each stage is the products of one operand, and what follows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tools.codegen.ir.graph import Ref, TensorMeta
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import Sizes


class Rows(StrEnum):
    """By what the rows of an operand are found."""

    ROW = "row"
    PAIR = "pair"
    POSITION = "position"
    """Of a pair among those sorted by expert: where a stage before left them."""


@dataclass(frozen=True)
class Rowwise:
    """A matrix of which each pair has a row."""

    name: str
    rows: Rows
    meta: TensorMeta
    """Of pairs by elements."""
    ref: Ref | None
    """What it is read from; none where a stage has left it."""

    @property
    def width(self) -> Sizes:
        """Elements of a row."""
        return self.meta.shape[1]


@dataclass(frozen=True)
class Weight:
    """What an expert has for itself, or what all have: a matrix or a vector."""

    name: str
    refs: tuple[Ref, ...]
    """One, or one for each expert."""
    meta: TensorMeta
    """Of one expert's, as it lies in memory."""
    is_common: bool = False
    """Whether all experts have the same."""

    @property
    def is_stacked(self) -> bool:
        """Whether one tensor holds all experts' along its first dimension."""
        return len(self.refs) == 1 and not self.is_common


@dataclass(frozen=True)
class Columns:
    """Every so many columns of a product, from one on."""

    start: Sizes = ()
    """Empty where it is the first one."""
    by: int = 1


@dataclass(frozen=True)
class GroupedProduct:
    """The rows of each expert times that expert's matrix."""

    name: str
    """What the epilogue reads the product as."""
    right: Weight
    along: bool
    """Whether the matrix lies along the sum: results by summed elements."""
    columns: Columns


@dataclass(frozen=True)
class Vector:
    """A row that is the same for all pairs of an expert, or for all."""

    name: str
    """As the epilogue reads it."""
    weight: Weight
    columns: Columns


@dataclass(frozen=True)
class Stage:
    """One launch of grouped products."""

    left: Rowwise
    products: tuple[GroupedProduct, ...]
    epilogue: Kernel | None
    """What is made of products, rows and vectors, element by element; none where the products are what is wanted."""
    rows: tuple[Rowwise, ...]
    """What the epilogue reads of each pair."""
    vectors: tuple[Vector, ...]
    results: tuple[Rowwise, ...]
    """What is left for stages after it, or for the sum."""
    summed: Sizes
    width: Sizes


@dataclass(frozen=True)
class Grouped:
    """All stages, and what becomes of the last one's result."""

    chosen: Ref
    base: Ref | None
    chosen_meta: TensorMeta
    result: TensorMeta
    stages: tuple[Stage, ...]
    value: Rowwise
    """What is added up over the places of a row, or written."""
    adds: bool
    experts: int
    first: int
    fixed: frozenset[Ref]
    """Parameters that keep their contents: what separate tensors have to be."""
    expr: int = 0

    @property
    def tables(self) -> Mapping[str, Weight]:
        """Weights that lie in a tensor for each expert, by name: kernels find them by their addresses."""
        every = [product.right for stage in self.stages for product in stage.products]
        every += [vector.weight for stage in self.stages for vector in stage.vectors]
        return {weight.name: weight for weight in every if not weight.is_stacked and not weight.is_common}
