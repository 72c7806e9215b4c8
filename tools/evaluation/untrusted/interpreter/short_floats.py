"""bfloat16 and float8 numbers in numpy, which has neither: their bits, their values as float32, and rounding to them as a device rounds."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class ShortFloat(NamedTuple):
    """A binary format all of whose numbers are float32's too."""

    bits: int
    mantissa: int
    """Bits of the mantissa, the leading 1 left out."""
    bias: int
    """Of the exponent."""
    largest: float
    """The largest finite number."""
    nan: int
    """The bits of the NaN that a device gives."""


BF16 = ShortFloat(16, 7, 127, 3.3895313892515355e38, 0x7FFF)
FP8_E4M3 = ShortFloat(8, 3, 7, 448.0, 0x7F)
FP8_E5M2 = ShortFloat(8, 2, 15, 57344.0, 0x7F)
SHORT_FLOATS = {"bf16": BF16, "fp8e4nv": FP8_E4M3, "fp8e5": FP8_E5M2}
"""By Triton's names: bfloat16, torch's float8_e4m3fn and float8_e5m2."""


def rounded(values: np.ndarray, form: ShortFloat, *, toward_zero: bool = False) -> np.ndarray:
    """Round to the nearest number of a format, ties to even, or toward zero; give float32.

    As NVIDIA's conversions do, float8 takes its largest number for all that is larger, infinities too (`cvt.rn.satfinite`).
    """
    import numpy as np

    exact = np.asarray(values, dtype=np.float32)
    magnitude = np.abs(exact)
    with np.errstate(all="ignore"):
        made = _kept_bits(magnitude, form, toward_zero=toward_zero)
        if form.bits == 8:
            # below the least normal number the last place stays the same
            step = np.float32(2.0 ** (1 - form.bias - form.mantissa))
            few = magnitude / step
            small = (np.trunc(few) if toward_zero else np.rint(few)) * step
            made = np.where(magnitude < 2.0 ** (1 - form.bias), small, np.minimum(made, np.float32(form.largest)))
    nan = np.uint32(form.nan << 16).view(np.float32) if form.bits == 16 else np.float32(np.nan)
    found: np.ndarray = np.where(np.isnan(exact), nan, np.copysign(made, exact))
    return found


def encoded(values: np.ndarray, form: ShortFloat) -> np.ndarray:
    """Give the bits of float32 values that the format holds, as unsigned integers of its size."""
    import numpy as np

    exact = np.ascontiguousarray(values, dtype=np.float32).reshape(np.shape(values))
    bits = exact.view(np.uint32)
    if form.bits == 16:
        return (bits >> np.uint32(16)).astype(np.uint16)
    found = np.searchsorted(_positive(form), np.abs(exact))
    found = np.where(np.isnan(exact), form.nan, found)
    return (found | (bits >> np.uint32(31)) << np.uint32(7)).astype(np.uint8)


def decoded(bits: np.ndarray, form: ShortFloat) -> np.ndarray:
    """Give the float32 values of unsigned integers that hold a format's bits."""
    import numpy as np

    if form.bits == 16:
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    values: np.ndarray = np.where(bits < 128, np.float32(1), np.float32(-1)) * _magnitudes(form)[bits & 127]
    return values


def _kept_bits(magnitude: np.ndarray, form: ShortFloat, *, toward_zero: bool) -> np.ndarray:
    """Round the mantissas of float32 values, whatever their exponent."""
    import numpy as np

    bits = magnitude.view(np.uint32)
    shift = np.uint32(23 - form.mantissa)
    last = (bits >> shift) & np.uint32(1)
    half = np.uint32(0) if toward_zero else (np.uint32(1) << (shift - np.uint32(1))) - np.uint32(1) + last
    return ((bits + half) >> shift << shift).view(np.float32)


@cache
def _magnitudes(form: ShortFloat) -> np.ndarray:
    """Give the values of the 128 patterns of 8 bits without a sign."""
    import numpy as np

    code = np.arange(128)
    exponent, mantissa = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
    scale = 2.0 ** (np.maximum(exponent, 1) - form.bias - form.mantissa)
    values = np.where(exponent == 0, mantissa, mantissa + (1 << form.mantissa)) * scale
    if form is FP8_E5M2:
        values[0x7C] = np.inf
    return np.where(values <= form.largest, values, np.where(np.isinf(values), np.inf, np.nan)).astype(np.float32)


@cache
def _positive(form: ShortFloat) -> np.ndarray:
    """Give those of them that are no NaN, in order."""
    import numpy as np

    values = _magnitudes(form)
    numbers: np.ndarray = values[~np.isnan(values)]
    return numbers
