"""Notices whether a reference puts equal elements in order: PyTorch leaves open which comes first, so indices prove nothing there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    import torch

NEAR = 8 * 2.0**-24
"""Relative difference of neighbours below which float32's rounding decides which of them comes first."""


class Ties(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches selections and sorts that are not stable; `argmax` and its like say which element they name."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; look at what it puts in order."""
        found = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if not self.met and (name == "topk" or (name in ("sort", "argsort") and not (kwargs or {}).get("stable"))):
            self.met = _has_ties(name, args, kwargs or {})
        return found


def _has_ties(name: str, args: Any, kwargs: Any) -> bool:
    """Whether two neighbours in order are equal, of those that are given and the first that is not."""
    x: torch.Tensor = args[0].detach()
    if not x.dim() or not x.numel():
        return False
    dim = (args[2] if len(args) > 2 else kwargs.get("dim", -1)) if name == "topk" else (args[1] if len(args) > 1 else kwargs.get("dim", -1))
    if name == "topk":
        largest = args[3] if len(args) > 3 else kwargs.get("largest", True)
        values = x.topk(min(args[1] + 1, x.shape[dim]), dim, largest).values
    else:
        values = x.sort(dim).values
    one, other = values.narrow(dim, 0, values.shape[dim] - 1), values.narrow(dim, 1, values.shape[dim] - 1)
    if not x.is_floating_point():
        return bool((one == other).any())
    # infinities of one sign are equal, and their difference is not a number
    return bool(((one == other) | ((one - other).abs() <= NEAR * one.abs())).any())
