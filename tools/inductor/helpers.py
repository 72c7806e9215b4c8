"""Functions that Inductor's kernels call on the device, in plain Triton: files carry those that they need."""

from __future__ import annotations

_TEXTS = {
    "promote_to_tensor": '''
@triton.jit
def promote_to_tensor(x):
    """A scalar as a tensor of one element; a tensor as it is."""
    return x + tl.zeros((1,), tl.int1)
''',
    "maximum": '''
@triton.jit
def maximum(a, b):
    """The larger of two; NaN where either is."""
    return tl.where((a > b) | (a != a), a, b)
''',
    "minimum": '''
@triton.jit
def minimum(a, b):
    """The smaller of two; NaN where either is."""
    return tl.where((a < b) | (a != a), a, b)
''',
    "max2": '''
@triton.jit
def max2(a, dim):
    """Largest element along a dimension; NaN where there is one."""
    return tl.reduce(a, dim, maximum)
''',
    "min2": '''
@triton.jit
def min2(a, dim):
    """Smallest element along a dimension; NaN where there is one."""
    return tl.reduce(a, dim, minimum)
''',
    "either": '''
@triton.jit
def either(a, b):
    return a | b
''',
    "any": '''
@triton.jit
def any(a, dim):
    """Whether any element along a dimension is set."""
    return tl.reduce(a, dim, either)
''',
    "times": '''
@triton.jit
def times(a, b):
    return a * b
''',
    "prod": '''
@triton.jit
def prod(a, dim):
    """Product along a dimension."""
    return tl.reduce(a, dim, times)
''',
    "maximum_with_index": '''
@triton.jit
def maximum_with_index(a, a_index, b, b_index):
    """The larger of two and its index; NaN is the largest, and of equals the first counts."""
    first = (a > b) | ((a != a) & (b == b))
    same = (a == b) | ((a != a) & (b != b))
    first |= same & (a_index < b_index)
    return tl.where(first, a, b), tl.where(first, a_index, b_index)
''',
    "minimum_with_index": '''
@triton.jit
def minimum_with_index(a, a_index, b, b_index):
    """The smaller of two and its index; NaN is the smallest, and of equals the first counts."""
    first = (a < b) | ((a != a) & (b == b))
    same = (a == b) | ((a != a) & (b != b))
    first |= same & (a_index < b_index)
    return tl.where(first, a, b), tl.where(first, a_index, b_index)
''',
    "max_with_index": '''
@triton.jit
def max_with_index(a, index, dim):
    """Largest element along a dimension, and its index."""
    return tl.reduce((a, index), dim, maximum_with_index)
''',
    "min_with_index": '''
@triton.jit
def min_with_index(a, index, dim):
    """Smallest element along a dimension, and its index."""
    return tl.reduce((a, index), dim, minimum_with_index)
''',
    "exp": '''
@triton.jit
def exp(x, use_fast_math: tl.constexpr):
    return tl.exp(x) if use_fast_math else libdevice.exp(x)
''',
    "online_softmax_reduce": '''
@triton.jit
def online_softmax_reduce(top, total, dim, use_fast_math: tl.constexpr):
    """Join partial maxima and sums of exponentials along a dimension."""
    joined = max2(top, dim)
    wide = tl.expand_dims(joined, dim)
    below = tl.where(wide == float("-inf"), 0, top - wide)
    return joined, tl.sum(total * exp(below, use_fast_math), dim)
''',
    "online_softmax_combine": '''
@triton.jit
def online_softmax_combine(top, total, x, use_fast_math: tl.constexpr):
    """Take one more element into a running maximum and sum of exponentials."""
    joined = maximum(top, x)
    kept = tl.where(joined == float("-inf"), 1.0, exp(top - joined, use_fast_math))
    added = tl.where(joined == float("-inf"), 1.0, exp(x - joined, use_fast_math))
    return joined, total * kept + added
''',
    "online_softmax_combine_with_sum": '''
@triton.jit
def online_softmax_combine_with_sum(top, total, other_top, other_total, use_fast_math: tl.constexpr):
    """Join two running maxima and sums of exponentials."""
    joined = maximum(top, other_top)
    kept = tl.where(joined == float("-inf"), 1.0, exp(top - joined, use_fast_math))
    added = tl.where(joined == float("-inf"), 1.0, exp(other_top - joined, use_fast_math))
    return joined, total * kept + other_total * added
''',
    "welford_reduce": '''
@triton.jit
def welford_reduce(x, mean, m2, weight, first_iteration):
    """Take one more element into a running mean and sum of squared distances from it (Welford)."""
    if first_iteration:
        new_weight = tl.full(weight.shape, 1, weight.dtype)
        new_mean = x
        new_m2 = tl.zeros_like(m2)
    else:
        delta = x - mean
        new_weight = weight + 1
        new_mean = mean + delta / new_weight
        new_m2 = m2 + delta * (x - new_mean)
    return new_mean, new_m2, new_weight
''',
    "welford_combine": '''
@triton.jit
def welford_combine(mean, m2, weight, other_mean, other_m2, other_weight):
    """Join the statistics of two sets; equal means, infinite ones too, are no distance apart."""
    delta = tl.where(mean == other_mean, 0.0, other_mean - mean)
    new_weight = weight + other_weight
    share = tl.where(new_weight == 0.0, 0.0, other_weight / new_weight)
    return mean + delta * share, m2 + other_m2 + delta * delta * weight * share, new_weight
''',
    "welford": '''
@triton.jit
def welford(mean, m2, weight, dim):
    """Join statistics along a dimension."""
    return tl.reduce((mean, m2, weight), dim, welford_combine)
''',
    "div_floor_integer": '''
@triton.jit
def div_floor_integer(a, b):
    """Quotient of integers, rounded down as Python does."""
    quotient = a // b
    lower = tl.where(a % b != 0, quotient - 1, quotient)
    return tl.where((a < 0) != (b < 0), lower, quotient)
''',
    "remainder_integer": '''
@triton.jit
def remainder_integer(a, b):
    """Remainder of integers with the sign of the divisor, as Python's."""
    remainder = a % b
    return tl.where((remainder != 0) & ((a < 0) != (b < 0)), remainder + b, remainder)
''',
    "select_one": '''
@triton.jit
def select_one(x, mask, dim, keep_dims=False):
    """The one element along a dimension where `mask` is 1, bit by bit."""
    bits = tl.core.get_int_dtype(x.dtype.primitive_bitwidth, signed=False)
    found = tl.sum(x.to(bits, bitcast=True) * mask, dim, keep_dims=keep_dims)
    return found.to(bits).to(x.dtype, bitcast=True)
''',
}  # fmt: skip
_NEEDS: dict[str, tuple[str, ...]] = {
    "max2": ("maximum",),
    "min2": ("minimum",),
    "any": ("either",),
    "prod": ("times",),
    "max_with_index": ("maximum_with_index",),
    "min_with_index": ("minimum_with_index",),
    "online_softmax_reduce": ("max2", "exp"),
    "online_softmax_combine": ("maximum", "exp"),
    "online_softmax_combine_with_sum": ("maximum", "exp"),
    "welford": ("welford_combine",),
}
OWN_NAMES = {"any": "any_set", "exp": "exponential"}
"""Names under which files carry helpers, where Inductor's would hide another."""


def is_known(name: str) -> bool:
    """Whether there is such a helper."""
    return name in _TEXTS


def helper_texts(names: set[str]) -> list[str]:
    """Write helpers and what they call, each once and after what it calls."""
    written: dict[str, str] = {}

    def write(name: str) -> None:
        for needed in _NEEDS.get(name, ()):
            write(needed)
        written[name] = _renamed(_TEXTS[name].strip("\n"))

    for name in sorted(names):
        write(name)
    return list(written.values())


def _renamed(text: str) -> str:
    for name, own in OWN_NAMES.items():
        text = text.replace(f"def {name}(", f"def {own}(")
    # `tl.exp(` and `libdevice.exp(` stay
    return text.replace(" exp(", " exponential(")
