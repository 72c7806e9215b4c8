"""The battery of input distributions: each keeps shapes and dtypes and changes only the contents of float inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tools.complex_pairs import changed
from tools.evaluation.wire.distributions import AS_MADE, NON_FINITE
from tools.float8 import is_float8, narrowed

if TYPE_CHECKING:
    import torch


def _offset(value: torch.Tensor) -> torch.Tensor:
    # half-precision formats have no digits left to cancel at 1000
    return value + (1000.0 if value.element_size() >= 4 else 8.0)


def _constant_rows(value: torch.Tensor) -> torch.Tensor:
    return value[..., :1].expand_as(value).contiguous() if value.dim() and value.shape[-1] else value


def _all_equal(value: torch.Tensor) -> torch.Tensor:
    return value.flatten()[:1].expand(value.numel()).reshape(value.shape).contiguous() if value.numel() else value


def _low_bits(value: torch.Tensor) -> torch.Tensor:
    """Set low bits of every mantissa so that any shorter format must round, and always towards zero.

    Of float32 the bits 15…11 become 01101 and those below stay: fp16 and TF32 lose 2^-12 to 2^-11 of a value, bf16 more
    than 2^-9, and sums do not average it out. float64 has the same bits in the same places, and float32 loses bits of it likewise.
    """
    import torch

    if value.dtype == torch.float32:
        bits = (value.view(torch.int32) & ~0xF800) | 0x6800
        made = bits.view(torch.float32)
    elif value.dtype == torch.float64:
        mask, pattern = (0xF800 << 29) | (3 << 27), (0x6800 << 29) | (1 << 27)
        made = ((value.view(torch.int64) & ~mask) | pattern).view(torch.float64)
    elif value.dtype == torch.float16:
        made = ((value.view(torch.int16) & ~0x7) | 0x3).view(torch.float16)
    else:
        return value
    return torch.where(value == 0, value, made)


def _sign(value: torch.Tensor) -> torch.Tensor:
    import torch

    # inputs that are positive stay so; zeros count as positive
    return torch.where(value < 0, -torch.ones_like(value), torch.ones_like(value))


def _odd_integers(value: torch.Tensor) -> torch.Tensor:
    """Draw odd integers beyond 2^11, which float32 holds and TF32, fp16 and bf16 cannot; half formats get what they can just hold."""
    import torch

    top = {4: 2048, 8: 2048}.get(value.element_size(), 128 if value.dtype == torch.bfloat16 else 1024)
    odd = torch.randint(0, top // 2, value.shape, device=value.device) * 2 + 1 + (top if value.element_size() >= 4 else 0)
    return _sign(value) * odd.to(value.dtype)


def _sparse(value: torch.Tensor) -> torch.Tensor:
    import torch

    return value * (torch.rand(value.shape, device=value.device) < 0.05).to(value.dtype)


def _one_hot(value: torch.Tensor) -> torch.Tensor:
    import torch

    if not value.dim() or not value.numel():
        return value
    places = torch.randint(0, value.shape[-1], (*value.shape[:-1], 1), device=value.device)
    return torch.zeros_like(value).scatter_(-1, places, torch.ones_like(value))


def _block_diagonal(value: torch.Tensor) -> torch.Tensor:
    """Keep four blocks along the diagonal of the last two dimensions."""
    import torch

    if value.dim() < 2 or not value.numel():
        return _sparse(value)
    rows, columns = value.shape[-2:]
    row = torch.arange(rows, device=value.device) * 4 // rows
    column = torch.arange(columns, device=value.device) * 4 // columns
    return value * (row[:, None] == column[None, :]).to(value.dtype)


def _heavy_tail(value: torch.Tensor) -> torch.Tensor:
    import torch

    return value * torch.exp(torch.randn(value.shape, device=value.device).clamp(-4, 4)).to(value.dtype)


def _sorted(value: torch.Tensor) -> torch.Tensor:
    return value.sort(dim=-1).values if value.dim() else value


def _negated(value: torch.Tensor) -> torch.Tensor:
    return -value


def _denormals(value: torch.Tensor) -> torch.Tensor:
    """Put numbers too small for a normal float into about a quarter of the places."""
    import torch

    tiny = torch.finfo(value.dtype).tiny
    chosen = torch.rand(value.shape, device=value.device) < 0.25
    return torch.where(chosen, _sign(value) * (tiny * 0.3), value)


def _signed_zeros(value: torch.Tensor) -> torch.Tensor:
    import torch

    chosen = torch.rand(value.shape, device=value.device) < 0.25
    zeros = torch.where(torch.rand(value.shape, device=value.device) < 0.5, torch.zeros_like(value), -torch.zeros_like(value))
    return torch.where(chosen, zeros, value)


def _non_finite(value: torch.Tensor) -> torch.Tensor:
    """Put NaN, infinity and minus infinity into three places; into fewer where there are fewer."""
    import torch

    made = value.clone()
    places = torch.randperm(made.numel(), device=value.device)[: min(3, (made.numel() + 1) // 2)]
    kinds = torch.tensor([float("nan"), float("inf"), float("-inf")], dtype=value.dtype, device=value.device)
    made.view(-1)[places] = kinds[: len(places)]
    return made


BATTERY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "low bits": _low_bits,
    "offset": _offset,
    "constant rows": _constant_rows,
    "odd integers": _odd_integers,
    "times 64": lambda value: value * 64,
    "times 0.01": lambda value: value * 0.01,
    "times 2^20": lambda value: value * 2.0**20,
    "times 2^-20": lambda value: value * 2.0**-20,
    "heavy tail": _heavy_tail,
    "negated": _negated,
    "small integers": lambda value: (value * 4).round(),
    "sparse": _sparse,
    "one-hot": _one_hot,
    "block diagonal": _block_diagonal,
    "sorted rows": _sorted,
    "all equal": _all_equal,
    "denormals": _denormals,
    "signed zeros": _signed_zeros,
}
"""By the names of `wire.distributions.NAMES`."""


def transform(name: str, values: list[Any]) -> list[Any]:
    """Apply a distribution to every float tensor among `values`, and to each part of a complex one; the caller has seeded torch."""
    if name == AS_MADE:
        return values
    change = _non_finite if name == NON_FINITE else BATTERY[name]
    return [changed(v, partial(_changed, change=change)) for v in values]


def _changed(value: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Change a tensor; one of float8 in bfloat16, which has its numbers, and within its range."""
    import torch

    if not is_float8(value.dtype):
        return change(value)
    made = change(value.to(torch.bfloat16))
    return made.to(value.dtype) if change is _non_finite else narrowed(made, value.dtype)
