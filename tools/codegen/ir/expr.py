"""The expressions of a kernel: loads, constants, pointwise maps and reductions over atoms; `builder.py` makes them.

Their dtypes are compute dtypes (`dtypes.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.graph import Ref, TensorMeta


class Fold(StrEnum):
    """What a reduction or a scan does with its elements."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    LOG_SUM = "logsum"
    """The logarithm of a sum of exponentials; of scans alone."""


class LoweringError(ValueError):
    """An operator, or a combination of operators, cannot be generated; says why."""


@dataclass(frozen=True)
class Expr:
    """One expression; equal ones are the same object."""

    op: str
    """`load`, `read`, `const`, `argument`, `size`, `index`, `reduce`, `scan`, `order`, `pick`, `join`, a map, or a leaf of a template."""
    args: tuple[int, ...]
    dtype: str
    atoms: frozenset[int]
    """What it varies over, before later splits: resolve before use."""
    extra: Any = None
    """Load: place among the inputs. Read: that, and whether its last argument is a guard. Const: the number.

    Size, index, reduce, scan: the atoms. Order: these, and the atom of what is picked. Cast: the dtype rounded to.
    """
    fold: Fold | None = None
    """Of a reduction or a scan; an order picks what is largest."""
    backwards: bool = False
    """Of a scan: whether each position has all after it, not all before."""
    skips_nan: bool = False
    """Of a maximum: whether what is no number may be left out, as where it shows in what is made relative to the maximum all the same."""

    @property
    def kind(self) -> Fold:
        """What a reduction or a scan does with its elements."""
        assert self.fold is not None
        return self.fold

    @property
    def is_made_by_template(self) -> bool:
        """Whether it is a leaf that a template computes: what a product, a convolution or a pooling sums."""
        return not self.args and self.op not in ("load", "const", "argument", "size", "index")

    @property
    def is_scan(self) -> bool:
        """Whether it accumulates along its atoms."""
        return self.op == "scan"

    @property
    def along(self) -> tuple[int, ...]:
        """Atoms along which it looks, where it is more than a map: a reduction, a scan or an order."""
        if self.op == "order":
            return tuple(self.extra[0])
        return tuple(self.extra) if self.op in ("reduce", "scan") else ()

    def reduces(self, *by: Fold) -> bool:
        """Whether it is a reduction, by one of these where any are given."""
        return self.op == "reduce" and (not by or self.fold in by)


@dataclass(frozen=True)
class Load:
    """One tensor that a kernel reads."""

    ref: Ref
    meta: TensorMeta
    dims: Dims
    private: bool = False
    """Read under atoms of its own: other readers of the tensor do not share it."""
    parameter: bool = False
    """A parameter or buffer of the module, contiguous by construction, or a tensor of which only the shape is read."""
    fixed: bool = False
    """One whose contents stay from call to call, so that what is made of it may be kept."""


@dataclass(frozen=True)
class Join:
    """Values that lie one after the other along a dimension of a result."""

    whole: int
    """Atom of the result's dimension."""
    parts: tuple[tuple[int, ...], ...]
    """Atom of each value's own dimension; none where it has one element."""
    same: tuple[int, ...] = ()
    """Which of them are the same everywhere along it, so that nothing is read there."""
