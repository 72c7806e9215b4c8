"""Tensor maps: what a kernel is given so that the device copies tiles of a tensor by itself (TMA, from compute capability 9.0 on).

Triton's host code makes one of each `TensorDescriptor` it launches a kernel with; a launch plan says what it makes them of.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Literal

from tools.evaluation.wire.driver_api import Driver
from tools.records import Record

NBYTES = 128
"""Of a map, as the driver encodes it."""
ALIGNMENT = 64
_MAX_RANK = 5
_MAX_BOX = 256
_TYPES = 13
"""CUtensorMapDataType has so many that Triton's dtypes map to."""
_SWIZZLES = 4
_DEVICE_TO_HOST = {8: 10, 9: 8, 10: 9}
"""Triton's compiler counts three dtypes otherwise than the driver."""
_L2_128B = 2  # CU_TENSOR_MAP_L2_PROMOTION_L2_128B, what Triton asks for
_ALIGNED = 16
"""Bytes that a tensor's address and all strides but the last must be multiples of (CUDA driver API, cuTensorMapEncodeTiled)."""


class TensorMap(Record):
    """A kernel's parameter that describes a tensor and the tiles it is copied in; dimensions from the outermost on."""

    type: Literal["tensor map"] = "tensor map"
    buffer: int
    offset: int
    """Bytes into the buffer."""
    dtype: int
    """CUtensorMapDataType."""
    item: int
    """Bytes of an element."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; the last is 1."""
    box: tuple[int, ...]
    """Elements of a tile as it is copied."""
    swizzle: int
    """CUtensorMapSwizzle."""
    nan: bool = False
    """What lies outside of the tensor reads as NaN, not as zero."""

    @property
    def nbytes(self) -> int:
        """Its size as the kernel takes it."""
        return NBYTES

    @property
    def alignment(self) -> int:
        """Of its place among the parameters."""
        return ALIGNMENT

    def fault(self, room: int) -> str:
        """Say what is impossible about it, its buffer having `room` bytes; empty where nothing is."""
        rank = len(self.shape)
        if not 0 < rank <= _MAX_RANK or len(self.strides) != rank or len(self.box) != rank or self.strides[-1] != 1:
            return "whose dimensions do not fit each other"
        known = 0 <= self.dtype < _TYPES and self.item in (1, 2, 4, 8) and 0 <= self.swizzle < _SWIZZLES
        if not known or not all(0 < size <= _MAX_BOX for size in self.box):
            return "of an unknown kind"
        apart = [stride * self.item for stride in self.strides[:-1]]
        if self.offset % _ALIGNED or any(stride <= 0 or stride % _ALIGNED for stride in apart) or min(self.shape) <= 0:
            return "that no device copies"
        reach = sum(stride * (size - 1) for stride, size in zip(self.strides, self.shape, strict=True)) + 1
        return "that reaches outside of its buffer" if self.offset < 0 or self.offset + reach * self.item > room else ""

    def encode(self, driver: Driver, address: int) -> bytes:
        """Have the driver make the map of the tensor in a buffer at `address`; raises DriverError where it refuses."""
        rank = len(self.shape)
        whole = ctypes.create_string_buffer(NBYTES + ALIGNMENT)
        place = -ctypes.addressof(whole) % ALIGNMENT
        sizes = (ctypes.c_uint64 * rank)(*reversed(self.shape))
        strides = (ctypes.c_uint64 * rank)(*(stride * self.item for stride in reversed(self.strides[:-1])))
        box = (ctypes.c_uint32 * rank)(*reversed(self.box))
        ones = (ctypes.c_uint32 * rank)(*([1] * rank))
        driver.ask(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(ctypes.addressof(whole) + place),
            ctypes.c_int(self.dtype),
            ctypes.c_uint32(rank),
            ctypes.c_void_p(address + self.offset),
            sizes,
            strides,
            box,
            ones,
            ctypes.c_int(0),
            ctypes.c_int(self.swizzle),
            ctypes.c_int(_L2_128B),
            ctypes.c_int(self.nan),
        )
        return whole.raw[place : place + NBYTES]


def is_descriptor(value: Any) -> bool:
    """Whether a kernel's argument is a tensor descriptor of Triton's."""
    return all(hasattr(value, name) for name in ("base", "shape", "strides", "block_shape"))


def described(value: Any, known: Mapping[str, Any], buffer: int) -> TensorMap | None:
    """Say what map Triton makes of a descriptor, given what its compiler says of it; None where that is no plain tiled one."""
    plain = not known.get("fp4_padded") and not known.get("is_im2col") and not getattr(value, "round_f32_to_tf32", False)
    if not plain:
        return None
    kind = int(known["elem_type"])
    return TensorMap(
        buffer=buffer,
        offset=value.base.storage_offset() * value.base.element_size(),
        dtype=_DEVICE_TO_HOST.get(kind, kind),
        item=int(known["elem_size"]),
        shape=tuple(map(int, value.shape)),
        strides=tuple(map(int, value.strides)),
        box=tuple(map(int, known["block_size"])),
        swizzle=int(known["swizzle"]),
        nan=getattr(value, "padding", "zero") == "nan",
    )
