"""Dtypes by torch's names: in which one a kernel computes, and what they are.

Compute dtypes are few: bool, int32, int64, float32, float64; shorter floats are computed in float32 and rounded when
stored. A number of the source without a dtype of its own is weak: it takes the dtype of what it meets.
"""

from __future__ import annotations

COMPUTE = {
    "float8_e4m3fn": "float32", "float8_e5m2": "float32",
    "float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64", "bool": "bool",
    "int8": "int32", "uint8": "int32", "int16": "int32", "int32": "int32", "int64": "int64",
}  # fmt: skip
"""Compute dtype of each tensor dtype."""

RANK = {"weak_bool": 0, "bool": 1, "weak_int": 2, "int32": 3, "int64": 4, "weak_float": 5, "float32": 6, "float64": 7}
"""Compute dtypes in the order in which one gives way to the next."""
TRITON = {"float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}
"""What Triton calls the dtypes that it calls otherwise than torch."""
LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
"""Largest numbers of short dtypes, which every longer one holds."""
FLOATING = frozenset({"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"})
SIGNED = frozenset({"int8", "int16", "int32", "int64"})
WEAK = frozenset({"weak_bool", "weak_int", "weak_float"})


def is_floating(dtype: str) -> bool:
    """Whether a dtype has fractions; a weak one has no dtype yet."""
    return dtype in FLOATING


def is_signed(dtype: str) -> bool:
    """Whether a dtype is of whole numbers with a sign."""
    return dtype in SIGNED


def is_weak(dtype: str) -> bool:
    """Whether a number takes the dtype of what it meets."""
    return dtype in WEAK
