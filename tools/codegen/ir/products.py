"""The products that a region does, whoever does them: what the cost model holds a library's kernels against."""

from __future__ import annotations

from dataclasses import dataclass

from tools.records import OperatorFamily


@dataclass(frozen=True)
class DenseConvolution:
    """A convolution as a library is asked for it; counts are at the sizes as written."""

    positions: int
    """Of all images, and of all phases where it is transposed."""
    groups: int
    results: int
    """Channels of one group of the result."""
    inputs: int
    """Channels of one group of the input."""
    taps: int
    """Elements of the kernel."""
    transposed: bool


@dataclass(frozen=True)
class Products:
    """Products of a region, and the family of the library's kernels that do such."""

    family: OperatorFamily
    flops: float
    summed: int
    """Products in the sum of one element."""
    dtype: str
    convolution: DenseConvolution | None = None
