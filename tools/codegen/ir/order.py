"""Rows in order: each element and its position packed into one whole number, so that the largest numbers are what is wanted, no two alike.

The upper bits are the element's, in an order of whole numbers that is torch's (NaN above all, -0.0 with 0.0); the lower ones are its
position, counted down, so that of equal elements the first one comes first. Elements of few bits make keys of 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.reindex import flat

BITS = {
    "float32": 32, "bfloat16": 16, "float16": 19, "bool": 2, "int8": 8, "uint8": 9, "int16": 16, "int32": 32,
}  # fmt: skip
"""Bits that tell the elements of a dtype apart, a sign among them; those of a short float are the upper ones of a float32."""


@dataclass(frozen=True)
class Packing:
    """How elements of one dtype and their positions make a key."""

    dtype: str
    """Of the elements, as their tensor has them."""
    largest: bool
    """Whether the largest element comes first."""
    key: str
    """Of the keys."""
    places: int
    """Bits of a position."""

    @property
    def dropped(self) -> int:
        """Lower bits of a float32 that all elements of the dtype have in common."""
        return 32 - BITS[self.dtype] if is_floating(self.dtype) else 0


def packing(dtype: str, largest: bool, longest: int) -> Packing:
    """Choose the keys of rows of up to `longest` elements."""
    if dtype not in BITS:
        raise LoweringError(f"an order of {dtype} is not generated: an element and its position make a key of 64 bits")
    narrow = longest <= 1 << (32 - BITS[dtype])
    return Packing(dtype, largest, "int32" if narrow else "int64", 32 - BITS[dtype] if narrow else 32)


def keys_of(b: Builder, x: Value, atoms: tuple[int, ...], packed: Packing, unlike: bool = False) -> Value:
    """Pack the elements along atoms: the first in order has the largest key; with `unlike` what is no number is first in either order."""
    return packed_at(b, x, flat(b, atoms), packed, unlike)


def packed_at(b: Builder, x: Value, position: Value, packed: Packing, unlike: bool = False) -> Value:
    """Pack elements with positions that are given."""
    bits = b.call("ordered_bits", x) if is_floating(packed.dtype) else b.cast(x, "int32") if x.dtype == "bool" else x
    if packed.dropped:
        bits = b.call("shift_right", bits, packed.dropped)
    if not packed.largest:
        bits = -1 - bits
        if unlike and is_floating(packed.dtype):
            bits = b.call("where", b.call("ne", x, x), (1 << (BITS[packed.dtype] - 1)) - 1, bits)
    last = (1 << packed.places) - 1
    return b.compute(bits, packed.key) * (1 << packed.places) + (last - b.compute(position, packed.key))


def position_in(b: Builder, key: Value, packed: Packing) -> Value:
    """Read the position off a key."""
    last = (1 << packed.places) - 1
    return b.compute(last - b.call("bitand", key, last), "int64")


def element_in(b: Builder, key: Value, packed: Packing) -> Value:
    """Read the element off a key."""
    bits = b.compute(b.call("shift_right", key, packed.places), "int32")
    if not packed.largest:
        bits = -1 - bits
    if packed.dropped:
        # below a negative number's bits all are ones in this order
        bits = bits * (1 << packed.dropped) + b.call("where", bits < 0, (1 << packed.dropped) - 1, 0)
    if is_floating(packed.dtype):
        return b.call("ordered_float", bits)
    return b.call("ne", bits, 0) if packed.dtype == "bool" else bits
