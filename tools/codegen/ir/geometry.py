"""What looks at a part of its input for each element of its result: poolings and convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.sizes import Sizes


@dataclass(frozen=True, kw_only=True)
class Sliding:
    """A window or a kernel that slides over the spatial dimensions of an input; numbers are by dimension."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    expr: int
    """The accumulator, as an expression of what follows."""


class PoolKind(StrEnum):
    """What a pooling makes of the elements of a window."""

    MAX = "max"
    MEAN = "mean"


@dataclass(frozen=True, kw_only=True)
class Window(Sliding):
    """A pooling inside the region: what is looked at, and how."""

    source: int
    """The value looked at, as an expression over the input's positions."""
    inside: tuple[int, ...]
    """Atoms of the input's spatial dimensions."""
    kind: PoolKind
    count_padding: bool
    """Whether a mean counts elements outside the input."""
    ceil: bool
    """Whether a window that begins inside of the input counts, though it ends outside."""
    divisor: int
    """What a mean divides by; 0 where it is the number of elements."""
    spatial: tuple[int, ...]
    """Atoms of the result's spatial dimensions."""
    windows: tuple[int, ...] = ()
    """How many windows an adaptive pooling cuts each dimension into, of sizes that then follow from the input's; otherwise nothing."""
    position: int = -1
    """Where in the input's plane the maximum is, as an expression of what follows; -1 where nobody asks."""


@dataclass(frozen=True, kw_only=True)
class Weighted(Sliding):
    """What every convolution has."""

    source: int
    """Among the loads, like the next."""
    weight: int
    dims: Dims
    """Batch, channel and spatial dimensions of the result."""


@dataclass(frozen=True, kw_only=True)
class Depthwise(Weighted):
    """A convolution, or its transpose, of each channel by itself, in one to three dimensions."""

    multiplier: int
    """Channels of the result that are made of each channel of the input."""
    extra: tuple[int, ...]
    """Elements that a transposed convolution adds at the end of each dimension."""
    transposed: bool


@dataclass(frozen=True, kw_only=True)
class Convolution(Weighted):
    """A dense convolution inside the region, of all channels or of groups of them, or its transpose."""

    extra: tuple[int, ...]
    """Elements that a transposed convolution adds at the end of each dimension."""
    transposed: bool
    channels: Sizes
    """Input channels of one group in every trace."""
    groups: int = 1
    """Sets of channels that are convolved each by itself."""
    scale: int = -1
    """Among the loads, the power of two that its source was multiplied by before it was written as halves; -1 where that was not done."""
    handed: bool = False
    """Whether its source could come so."""
