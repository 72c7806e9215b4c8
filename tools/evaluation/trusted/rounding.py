"""Rounding to fewer bits of mantissa, whatever the exponent: how a shorter format loses digits, without its limits of range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tools.complex_pairs import changed

if TYPE_CHECKING:
    import torch

SHORTER = {2.0**-53: 2.0**-24, 2.0**-24: 2.0**-11, 2.0**-11: 2.0**-8, 2.0**-8: 2.0**-4, 2.0**-4: 2.0**-3, 2.0**-3: 2.0**-2}
"""Roundoff of the next shorter format: float64, float32, TF32 and fp16, bf16, fp8 (E4M3 and E5M2)."""


_HIGH = 61
"""A bit of a product of 64 bits that all bits of a number have a say in."""


def rounded(value: torch.Tensor, roundoff: float) -> torch.Tensor:
    """Round a float tensor to nearest, ties to even, keeping its dtype."""
    import torch

    exact = value.double()
    mantissa, exponent = torch.frexp(exact)
    scale = 2.0 ** round(-math.log2(roundoff))
    made = torch.ldexp((mantissa * scale).round() / scale, exponent)
    return torch.where(torch.isfinite(exact), made, exact).to(value.dtype)


def stepped(values: list[Any], roundoff: float, *, alike: bool = False) -> list[Any]:
    """Move every element of the float tensors among `values` by one or two units of a format's last place, up or down at random.

    `alike`: equal elements stay equal. Rows that are all the same round in the same way then, and no mean over them hides it.
    """
    import torch

    factor, shift = torch.randint(1 << 61, (2,)).tolist()

    def step(value: torch.Tensor) -> torch.Tensor:
        if alike:
            bits = value.contiguous().view(getattr(torch, f"int{8 * value.element_size()}")).long()
            signs = (bits.mul_(2 * factor + 1).add_(shift) >> _HIGH).bitwise_and_(1).double().mul_(2).sub_(1)
        else:
            signs = torch.randint(0, 2, value.shape, device=value.device, dtype=torch.float64).mul_(2).sub_(1)
        return signs.mul_(2 * roundoff).add_(1).mul_(value.double()).to(value.dtype)

    return [changed(v, step) for v in values]


def all_rounded(values: list[Any], roundoff: float) -> list[Any]:
    """Round the float tensors among `values`."""
    return [changed(v, lambda value: rounded(value, roundoff)) for v in values]


def to_tf32(value: Any) -> Any:
    """Round float32 and complex64 tensors to TF32's 10 bits of mantissa, to nearest, ties away from zero, as `cvt.rna.tf32` does."""
    import torch

    def shortened(part: torch.Tensor) -> torch.Tensor:
        bits = part.view(torch.int32)
        return torch.where(torch.isfinite(part), ((bits + 0x1000) & ~0x1FFF).view(torch.float32), part)

    is_single = isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.complex64)
    return changed(value, shortened) if is_single else value
