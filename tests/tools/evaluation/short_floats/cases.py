"""Which kernels run on which numbers: made from integers alone, so that every machine and every version makes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

SIZE = 1024
"""Elements of every input."""

FORMATS = {
    "float32": (torch.float32, torch.int32, 8, 23),
    "float16": (torch.float16, torch.int16, 5, 10),
    "bfloat16": (torch.bfloat16, torch.int16, 8, 7),
    "float8_e4m3fn": (torch.float8_e4m3fn, torch.uint8, 4, 3),
    "float8_e5m2": (torch.float8_e5m2, torch.uint8, 5, 2),
    "int32": (torch.int32, torch.int32, 0, 31),
}
"""What a dtype is in torch, the integer of its size, and the bits of its exponent and its mantissa."""


class Case(NamedTuple):
    """One kernel on one kind of numbers."""

    kernel: str
    source: str
    """The inputs' dtype."""
    target: str
    """The output's dtype."""
    numbers: str
    """`any` bit pattern, `near` one another (within 2^±4), or halfway (`ties`) between numbers of the target's format."""
    shape: tuple[int, ...] = (SIZE,)
    """The output's."""

    @property
    def name(self) -> str:
        """Return what a recording calls the case."""
        return f"{self.kernel} {self.source} {self.target} {self.numbers}"


def cases() -> Iterator[Case]:
    """Every case, in the order in which they are recorded."""
    b = "bfloat16"
    for kernel in ("add", "subtract", "multiply", "divide", "multiply_add", "fused_multiply_add", "choose"):
        yield Case(kernel, b, b, "any")
        yield Case(kernel, b, b, "near")
    yield from (
        Case(kernel, b, b, "near") for kernel in ("chain", "constants", "exponential", "running_sum", "cumulative_sum", "atomic_add")
    )
    yield from (Case(kernel, b, b, "near", (16,)) for kernel in ("row_sum", "row_sum_cast", "row_max"))
    yield Case("row_sum_cast", b, "float32", "near", (16,))
    yield Case("bitcast", b, "int32", "any")
    yield Case("cast", "int32", b, "near")
    for target in (b, "float8_e4m3fn", "float8_e5m2"):
        yield from (Case("cast", "float32", target, numbers) for numbers in ("any", "ties"))
        yield Case("store", "float32", target, "ties")
    yield from (Case("cast_toward_zero", "float32", target, "ties") for target in (b, "float8_e5m2"))
    yield from (Case("cast", b, target, "any") for target in ("float32", "float16", "float8_e4m3fn", "float8_e5m2", "int32"))
    yield from (Case("cast", "float16", target, "any") for target in (b, "float8_e4m3fn", "float8_e5m2"))
    for source in ("float8_e4m3fn", "float8_e5m2"):
        yield from (Case("cast", source, target, "any") for target in ("float32", "float16", b))
        yield Case("exponential", source, b, "near")
        yield Case("dot", source, "float32", "near", (32, 32))
        yield Case("wide_dot", source, "float32", "near", (64, 16))
    yield Case("dot", b, "float32", "near", (32, 32))
    yield Case("dot", b, b, "near", (32, 32))
    yield Case("wide_dot", b, "float32", "near", (64, 16))


def inputs(case: Case) -> list[torch.Tensor]:
    """Return x and y of a case, on the CPU."""
    return [_numbers(case, seed) for seed in (1, 2)]


def run(case: Case, device: str) -> torch.Tensor:
    """Return what the case's kernel stores there; what it does not store is 0."""
    # Triton reads TRITON_INTERPRET when kernels are defined, and whoever only reads cases needs no Triton
    from . import kernels

    dtype = FORMATS[case.target][0]
    out = torch.zeros(case.shape, dtype=torch.float32).to(dtype).to(device)
    kernel: Callable[..., object] = getattr(kernels, case.kernel)[(1,)]
    kernel(*(value.to(device) for value in inputs(case)), out, N=SIZE)
    return out.cpu()


def codes(value: torch.Tensor) -> np.ndarray:
    """Return the bits of each element as integers."""
    return value.contiguous().view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[value.element_size()]).numpy()


def _numbers(case: Case, seed: int) -> torch.Tensor:
    dtype, integer, exponent, mantissa = FORMATS[case.source]
    word = _words(seed)
    if case.numbers == "any":
        bits = word >> np.uint32(31 - exponent - mantissa)
    elif not exponent:
        bits = (word >> np.uint32(12)) - np.uint32(2**19)
    else:
        bits = _near(word, exponent, mantissa) if case.numbers == "near" else _ties(word, case.target)
    return torch.from_numpy(bits.astype(np.uint32).view(np.int32).copy()).to(integer).view(dtype)


def _words(seed: int) -> np.ndarray:
    """Return 32 mixed bits for each element (the finaliser of MurmurHash3)."""
    word = np.arange(1, SIZE + 1, dtype=np.uint32) * np.uint32(2 * seed + 1)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        word = (word ^ (word >> np.uint32(shift))) * np.uint32(factor)
    return word ^ (word >> np.uint32(16))


def _near(word: np.ndarray, exponent: int, mantissa: int) -> np.ndarray:
    scale = np.uint32(2 ** (exponent - 1) - 5) + (word >> np.uint32(8)) % np.uint32(8)
    sign = (word & np.uint32(1)) << np.uint32(exponent + mantissa)
    return sign | (scale << np.uint32(mantissa)) | ((word >> np.uint32(12)) & np.uint32(2**mantissa - 1))


def _ties(word: np.ndarray, target: str) -> np.ndarray:
    """float32 halfway between neighbours of the target's format and just beside, from below its least to above its largest number."""
    _, _, exponent, mantissa = FORMATS[target]
    span = 2 ** (exponent - 1) + mantissa + 2
    scale = np.clip(127 + (word >> np.uint32(8)).astype(np.int64) % (2 * span) - span, 0, 254).astype(np.uint32)
    # below the format's least normal number the halfway point lies higher by the digits that are lost
    lost = np.clip(127 - 2 ** (exponent - 1) + 2 - scale.astype(np.int64), 0, mantissa).astype(np.uint32) if exponent < 8 else np.uint32(0)
    half = np.uint32(1) << (np.uint32(22 - mantissa) + lost)
    kept = (word & np.uint32(2**23 - 1)) & ~(half * np.uint32(2) - np.uint32(1))
    beside = np.array([0, 1, 2**32 - 1], dtype=np.uint32)[word % np.uint32(3)]
    return ((word >> np.uint32(31)) << np.uint32(31)) | (((scale << np.uint32(23)) | kept | half) + beside)
