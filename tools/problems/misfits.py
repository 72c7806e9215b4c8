"""Calls that PyTorch takes although their tensors do not fit together: what such a call reads lies outside of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ATTENTION = "_scaled_dot_product"
"""How ATen's names of fused attention begin, on every device."""


def misfit(name: str, args: Sequence[Any]) -> str:
    """Say how a call's tensors do not fit together, or nothing.

    Fused attention reads as many values as there are keys and counts neither: on a CPU it goes past the values' end, and
    cuDNN dies of it.
    """
    if not name.startswith(ATTENTION) or "backward" in name:
        return ""
    key, value = args[1], args[2]
    return "" if key.shape[-2] == value.shape[-2] else f"attention is given {key.shape[-2]} keys and {value.shape[-2]} values"
