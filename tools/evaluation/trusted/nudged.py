"""Runs a reference whose floats are a little larger, or smaller, where they become whole numbers: at an edge either number is right.

It runs in float64: what is whole there is a count or was rounded before, while float32's own rounding makes whole numbers at edges.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tools.evaluation.trusted.numerics import FLOOR_ROUNDOFFS, ROUNDOFF
from tools.evaluation.trusted.rerounding import counts

if TYPE_CHECKING:
    import torch

NUDGE = FLOOR_ROUNDOFFS["float32"] * ROUNDOFF["float32"]
"""By how much of an element and of the typical one of its tensor: what any output of float32 may be off."""
ROUNDING = frozenset({"round", "floor", "ceil", "trunc"})
"""Operators that answer with whole numbers."""
PLACING = frozenset(
    {
        "_unsafe_index", "_index_put_impl", "_unsafe_index_put", "bincount", "bucketize", "cross_entropy_loss", "embedding",
        "embedding_bag", "gather", "index", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select",
        "nll_loss2d_forward", "nll_loss_forward", "one_hot", "put", "scatter", "scatter_add", "scatter_reduce", "take",
    }
)  # fmt: skip
"""Operators that whole numbers lead to a place, which another number may be no place of: on a GPU that ends the process."""


def may_nudge(operators: Collection[str]) -> bool:
    """Whether no operator of a reference, named as in its work, takes whole numbers for places."""
    return not PLACING & {name.split(".")[1].rstrip("_") for name in operators if "." in name}


class Nudged(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Moves floats before they are rounded to whole numbers."""

    # `torch.cond` and its like run as they are, without a look inside
    supports_higher_order_operators = True

    def __init__(self, way: int) -> None:
        """Move up by 1, down by -1."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._way = way

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; of one that makes whole numbers move what it is given."""
        import torch

        given = kwargs or {}
        if not hasattr(func, "overloadpacket") or not args or not isinstance(args[0], torch.Tensor):
            return func(*args, **given)
        name = func.overloadpacket.__name__
        if name == "copy_":
            return func(args[0], self._moved(args[1]), *args[2:], **given) if counts([args[0], args[1]], given) else func(*args, **given)
        tensors = [value for value in tree_leaves((args, given)) if isinstance(value, torch.Tensor)]
        if name.rstrip("_") in ROUNDING and args[0].is_floating_point():
            if name.endswith("_"):
                args[0].copy_(self._moved(args[0]))
            else:
                args = (self._moved(args[0]), *args[1:])
        elif name == "_to_copy" and counts(tensors, given):
            args = (self._moved(args[0]), *args[1:])
        return func(*args, **given)

    def _moved(self, value: torch.Tensor) -> torch.Tensor:
        import torch

        wide = value.double()
        finite = torch.isfinite(wide)
        typical = torch.where(finite, wide, 0.0).square().mean().sqrt()
        moved = wide + self._way * NUDGE * (wide.abs() + typical)
        return torch.where(finite & (wide != wide.round()), moved, wide).to(value.dtype)
