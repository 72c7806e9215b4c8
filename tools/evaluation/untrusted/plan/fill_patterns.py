"""Which operators write one constant over a tensor, and by what pattern a memory set does the same."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_ZEROS = frozenset(["zeros", "zeros_like", "new_zeros", "zero_"])
_ONES = frozenset(["ones", "ones_like", "new_ones"])
_VALUE_AT = {"full": 1, "full_like": 1, "new_full": 2, "fill_": 1}
"""Operators that write a constant, and which argument it is."""
_FORMATS = {
    "float64": "d",
    "float32": "f",
    "float16": "e",
    "int64": "q",
    "int32": "i",
    "int16": "h",
    "int8": "b",
    "uint8": "B",
    "bool": "?",
}
"""How `struct` writes a value of a dtype; bfloat16 is a float32 without its lower half."""


class Unsealable(Exception):  # noqa: N818 - a finding, and no error of anybody
    """The candidate does what a plan cannot say."""


def fills(name: str) -> bool:
    """Whether an operator of this name writes a constant."""
    return name in _ZEROS | _ONES or name in _VALUE_AT


def constant(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    """Give the number that such an operator writes."""
    return 0 if name in _ZEROS else 1 if name in _ONES else _constant(name, args, kwargs)


def _constant(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    place = _VALUE_AT[name]
    value = args[place] if len(args) > place else kwargs.get("fill_value", kwargs.get("value"))
    if not isinstance(value, bool | int | float):
        raise Unsealable(f"its host code fills a tensor with what is no plain number ({name})")
    return value


def as_it_lies(tensor: torch.Tensor) -> None:
    """Raise Unsealable for a view that is read otherwise than it lies in memory."""
    if tensor.is_conj() or tensor.is_neg():
        raise Unsealable("its host code leaves a conjugate or a sign to be worked out where a tensor is read")


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements cover one contiguous part of the storage, in whatever order."""
    reach = 1
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1):
        if stride != reach:
            return False
        reach *= size
    return True


def pattern(value: float, dtype: str, item: int) -> tuple[Any, int]:
    """Width and value of the pattern that writes `value`; eight-byte elements need one that repeats."""
    if dtype == "bfloat16":
        # as torch rounds: to nearest, ties to even
        bits = struct.unpack("=I", struct.pack("=f", value))[0]
        data = struct.pack("=H", (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 & 0xFFFF)
    elif dtype in _FORMATS:
        code = _FORMATS[dtype]
        try:
            data = struct.pack("=" + code, float(value) if code in "dfe" else bool(value) if code == "?" else int(value))
        except (struct.error, OverflowError, ValueError):
            raise Unsealable(f"its host code fills a tensor of {dtype} with {value}") from None
    else:
        raise Unsealable(f"its host code fills a tensor of {dtype}")
    if len(set(data)) == 1:
        return 1, data[0]
    if item <= 4:
        return item, int.from_bytes(data, "little")
    if data[:4] == data[4:]:
        return 4, int.from_bytes(data[:4], "little")
    raise Unsealable(f"its host code fills a tensor of {dtype} with {value}, which no memory set can")
