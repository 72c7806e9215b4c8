"""Rows that a reference picks by a condition, in a run without contents: as many for each condition as if all were spread evenly."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class EvenRows(TorchFunctionMode):
    """Gives positions without contents for `torch.where(mask)`, `nonzero` and `x[mask]`, and counts how often it does."""

    def __init__(self, conditions: int) -> None:
        """Take among how many conditions all positions are spread."""
        super().__init__()
        self.picked = 0
        """How many conditions there were."""
        self._conditions = conditions

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Take the place of what picks rows."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "where" and len(args) == 1 and not kwargs:
            return self._places(args[0])
        if name == "nonzero" and len(args) == 1:
            places = self._places(args[0])
            return places if kwargs.get("as_tuple") else torch.stack(places, dim=1)
        if name in ("__getitem__", "__setitem__") and _has_mask(args[1]):
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            found = tuple(part for one in index for part in (self._places(one) if _is_mask(one) else (one,)))
            return func(args[0], found, *args[2:])
        return func(*args, **kwargs)

    def _places(self, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.picked += 1
        count = -(-mask.numel() // self._conditions)
        return tuple(torch.zeros(count, dtype=torch.int64, device=mask.device) for _ in range(mask.dim()))


def _is_mask(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.dim() > 0


def _has_mask(index: Any) -> bool:
    return any(map(_is_mask, index)) if isinstance(index, tuple) else _is_mask(index)
