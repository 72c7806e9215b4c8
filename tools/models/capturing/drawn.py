"""Writes how a tensor like a given one is drawn: same shape and dtype, contents of the same mean and spread, or of the same range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch

SHORTEST = 1e-30
"""A spread below this is none."""


class UndrawableError(Exception):
    """A tensor whose contents no distribution here gives; the text says why."""


def drawn_text(value: torch.Tensor, shape: str, sizes: Mapping[str, int] = MappingProxyType({})) -> str:
    """Write the expression that draws a tensor like `value` with the sizes that `shape` has as text, e.g. `1, size0, 64`.

    Whole numbers that reach up to one of `sizes` follow it: they may be places along it.
    """
    if value.dtype is torch.complex64:
        return f"torch.complex({drawn_text(value.real, shape, sizes)}, {drawn_text(value.imag, shape, sizes)})"
    if value.is_complex():
        raise UndrawableError(f"numbers of {value.dtype}")
    shape = f"({shape})" if "," in shape or not shape else f"({shape},)"
    if value.dtype is torch.bool:
        return f"torch.rand({shape}) < {_short(value.double().mean().item() if value.numel() else 0.5)}"
    if not value.numel():
        return _typed(f"torch.zeros({shape})", value.dtype)
    if not value.is_floating_point():
        low, high = int(value.min()), int(value.max())
        size = _reached(low, high, sizes)
        span = f"0, {size}" if size else f"{low}, {high + 1}"
        return _typed(f"torch.randint({span}, {shape})", value.dtype, whole=torch.int64)
    numbers = value.detach().double()
    if not bool(numbers.isfinite().all()):
        raise UndrawableError("infinities or NaN, as a mask has them")
    return _float_text(numbers, value.dtype, shape)


def _reached(low: int, high: int, sizes: Mapping[str, int]) -> str:
    """Name the size along which whole numbers are places, spread over most of it; empty for none."""
    near = {name: size for name, size in sizes.items() if 0 <= low <= size // 8 and size / 2 < high + 1 <= size}
    return min(near, key=lambda name: near[name], default="")


def _float_text(numbers: torch.Tensor, dtype: torch.dtype, shape: str) -> str:
    low, high, mean, spread = (each.item() for each in (numbers.min(), numbers.max(), numbers.mean(), numbers.std(correction=0)))
    if spread < SHORTEST:
        return _typed(f"torch.full({shape}, {_short(mean)})", dtype)
    if low < 0.0 < high:
        shift = f" + {_short(mean)}" if abs(mean) > spread / 100 else ""
        return _typed(f"torch.randn({shape}) * {_short(spread)}{shift}", dtype)
    return _typed(f"torch.rand({shape}) * {_short(high - low)} + {_short(low)}", dtype)


def _typed(text: str, dtype: torch.dtype, whole: torch.dtype = torch.float32) -> str:
    return text if dtype is whole else f"({text}).to({dtype})"


def _short(number: float) -> str:
    return repr(float(f"{number:.4g}"))


def constant_text(value: torch.Tensor, device: str) -> str:
    """Write a tensor of these very numbers on `device`, an expression; of one number so that a CUDA graph can hold it."""
    where = f"dtype={value.dtype}, device={device}"
    if value.dim() == 0:
        return f"torch.full((), {_numbers(value.item())}, {where})"
    return f"torch.tensor({_numbers(value.tolist())}, {where})"


def _numbers(values: Any) -> str:
    """Write nested lists of numbers, infinities and NaN as Python has them."""
    if isinstance(values, list):
        return f"[{', '.join(map(_numbers, values))}]"
    return f'float("{values}")' if isinstance(values, float) and not math.isfinite(values) else repr(values)
