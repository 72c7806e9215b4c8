"""What torch.autocast rounds to, as guards ask, and its end inside of operators: what they round is written in their kernels."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

_KNOWN: Any = torch._C
_NOTHING = contextlib.nullcontext()


def rounds_to(device: str) -> torch.dtype | None:
    """Give the dtype of autocast on a type of device; None where that is off."""
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def unrounded() -> Any:
    """Make a context in which autocast is off, for calls of PyTorch by a kernel's host code."""
    return _KNOWN._DisableAutocast() if _KNOWN._is_any_autocast_enabled() else _NOTHING


def reason_of(wanted: torch.dtype | None, device: str) -> str:
    """Say why an operator that was made for autocast to `wanted`, or for none, is not for now; empty where it is."""
    now = rounds_to(device)
    if now is wanted:
        return ""
    return "autocast" if wanted is None else f"no autocast to {str(wanted).removeprefix('torch.')}"
