"""Runs a reference whose floats are a little larger, or smaller, where they are rounded or compared: at an edge either answer is right.

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
COMPARING = frozenset({"lt", "le", "gt", "ge"})
"""Operators whose answers are counted, or let a whole number in."""
PLACES = {
    "_index_put_impl": 1, "_unsafe_index": 1, "_unsafe_index_put": 1, "embedding": 1, "gather": 2, "index": 1, "index_add": 2,
    "index_copy": 2, "index_fill": 2, "index_put": 1, "index_reduce": 2, "index_select": 2, "put": 1, "scatter": 2, "scatter_add": 2,
    "scatter_reduce": 2, "take": 1,
}  # fmt: skip
"""Operators that whole numbers lead to a place, by the argument that says it: another number may be no place, and ends a GPU's process."""
PLACING = frozenset(
    {
        "_embedding_bag", "_embedding_bag_forward_only", "bincount", "bucketize", "cross_entropy_loss", "embedding_bag",
        "nll_loss2d_forward", "nll_loss_forward", "one_hot", *PLACES,
    }
)  # fmt: skip
"""These, and such that take several arguments for places, or make numbers of places."""
TOLD = "_local_scalar_dense"
"""Gives Python a number, of which nobody knows where it goes."""


class MovedPlaceError(RuntimeError):
    """What was moved before it was rounded would lead to a place."""


def may_nudge(operators: Collection[str]) -> bool:
    """Whether no operator of a reference, named as in its work, takes whole numbers for places."""
    return not PLACING & {name.split(".")[1].rstrip("_") for name in operators if "." in name}


class Nudged(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Moves floats before they are rounded to whole numbers."""

    # `torch.cond` and its like run as they are, without a look inside
    supports_higher_order_operators = True

    def __init__(self, way: int, *, follows: bool = False) -> None:
        """Move up by 1, down by -1, or by chance by 0; follow what was moved, and raise MovedPlaceError before it leads to a place."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._way, self._follows = way, follows
        self._memories: set[int] = set()
        """Where what follows from a moved number lies."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; of one that makes whole numbers or compares move what it is given."""
        given = kwargs or {}
        if not hasattr(func, "overloadpacket"):
            if self._memories:
                raise MovedPlaceError(str(func))
            return func(*args, **given)
        tensors = _tensors((args, given))
        name = func.overloadpacket.__name__
        if name.rstrip("_") in PLACING or name == TOLD:
            self._ask(name.rstrip("_"), args, given)
        moved = self._with_moved(name, args, given, tensors)
        result = func(*(moved or args), **given)
        if self._follows:
            self._follow(func, args, given, result, moved is not None)
        return result

    def _with_moved(self, name: str, args: Any, given: Any, tensors: list[torch.Tensor]) -> Any:
        """Give the arguments of an operator that makes whole numbers or compares, moved; None of another."""
        import torch

        if not args or not isinstance(args[0], torch.Tensor):
            return None
        if name == "copy_":
            return (args[0], self._moved(args[1]), *args[2:]) if counts([args[0], args[1]], given) else None
        if name in COMPARING and args[0].is_floating_point():
            return (self._moved(args[0]), *args[1:])
        if name.rstrip("_") in ROUNDING and args[0].is_floating_point():
            if not name.endswith("_"):
                return (self._moved(args[0]), *args[1:])
            args[0].copy_(self._moved(args[0]))
            return args
        return (self._moved(args[0]), *args[1:]) if name == "_to_copy" and counts(tensors, given) else None

    def _ask(self, name: str, args: Any, given: Any) -> None:
        """Raise where what follows from a moved number is taken for a place."""
        place = PLACES.get(name)
        looked = args[place] if place is not None and len(args) > place else (args, given)
        if any(_memory(each) in self._memories for each in _tensors(looked)):
            raise MovedPlaceError(name)

    def _follow(self, func: Any, args: Any, given: Any, result: Any, moved: bool) -> None:
        """Note which memory holds what follows from a moved number: new results, and what is written or looked at in another way."""
        before = {_memory(each) for each in _tensors((args, given))}
        led = moved or bool(before & self._memories)
        written = [value for argument, value in zip(func._schema.arguments, args, strict=False) if _is_written(argument)]
        written += [given[argument.name] for argument in func._schema.arguments if _is_written(argument) and argument.name in given]
        found = {_memory(each) for each in _tensors((written, result))}
        if led:
            self._memories |= found - {0}
        else:
            self._memories -= found - before

    def _moved(self, value: torch.Tensor) -> torch.Tensor:
        import torch

        wide = value.double()
        finite = torch.isfinite(wide)
        typical = torch.where(finite, wide, 0.0).square().mean().sqrt()
        way = torch.randint(2, wide.shape, device=wide.device).mul_(2).sub_(1) if self._way == 0 else self._way
        moved = wide + way * NUDGE * (wide.abs() + typical)
        return torch.where(finite & (wide != wide.round()), moved, wide).to(value.dtype)


def _tensors(tree: Any) -> list[torch.Tensor]:
    import torch

    return [value for value in tree_leaves(tree) if isinstance(value, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write
