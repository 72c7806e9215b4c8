"""Runs a reference whose every operation is rounded otherwise: Monte Carlo arithmetic.

D. S. Parker, B. Pierce, P. R. Eggert, Monte Carlo arithmetic: how to gamble with floating point and win, Computing in Science and
Engineering 2(4), 2000. A result is moved at random by up to half a unit in its last place, and rounded at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tools.complex_pairs import changed
from tools.evaluation.trusted.numerics import ROUNDOFF
from tools.evaluation.trusted.poles import Poles

if TYPE_CHECKING:
    import torch

MOVING = frozenset(
    {
        "_reshape_alias", "_unsafe_index", "_unsafe_view", "alias", "cat", "clone", "col2im_copy", "complex", "constant_pad_nd", "detach",
        "diag_embed", "embedding", "empty_like", "expand_copy", "fill", "flip", "full_like", "gather", "im2col", "index", "index_copy",
        "index_fill", "index_select", "lift", "lift_fresh", "lift_fresh_copy", "masked_fill", "masked_scatter", "masked_select",
        "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "normal", "ones_like", "permute_copy", "pixel_shuffle",
        "pixel_unshuffle", "rand_like", "randn_like", "random", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "repeat",
        "replication_pad1d", "replication_pad2d", "replication_pad3d", "resize", "resize_as", "roll", "select_scatter", "set",
        "slice_scatter", "squeeze", "stack", "t", "take", "transpose", "tril", "triu", "unfold_copy", "uniform", "unsqueeze",
        "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "where", "zero", "zeros_like",
    }
)  # fmt: skip
"""Operators whose results are elements of what they are given, or none of its digits."""
CHOOSING = frozenset(
    {
        "_unique", "_unique2", "abs", "adaptive_max_pool2d", "adaptive_max_pool3d", "amax", "amin", "aminmax", "argsort", "ceil", "clamp",
        "clamp_max", "clamp_min", "copysign", "cummax", "cummin", "floor", "fmax", "fmin", "fmod", "frac", "fractional_max_pool2d",
        "hardtanh", "heaviside", "kthvalue", "max", "max_pool2d_with_indices", "max_pool3d_with_indices", "maximum", "median", "min",
        "minimum", "mode", "nan_to_num", "neg", "relu", "round", "sgn", "sign", "sort", "threshold", "topk", "trunc", "unique_consecutive",
    }
)  # fmt: skip
"""Operators that compare, and answer with what they are given or with whole numbers; `sgn` rounds complex numbers alone."""
COPYING = frozenset({"_to_copy", "copy"})
"""Operators that round where they narrow alone."""
PUTTING = frozenset({"index_put", "_index_put_impl", "_unsafe_index_put", "put", "scatter"})
"""Operators that round where they accumulate alone."""
ASSERTING = frozenset({"bernoulli", "binary_cross_entropy", "bucketize", "multinomial", "searchsorted"})
"""Operators that end a CUDA context, or lead to an index that does, where rounding takes a number out of its range."""


class OutOfRangeError(ArithmeticError):
    """A number that is rounded otherwise might be no index or no probability any more."""


def rerounded(value: torch.Tensor) -> torch.Tensor:
    """Move each element at random to a neighbour in its format, or leave it: by up to half a unit in the last place, then rounded so.

    Whole numbers of no more than half of the format's digits stay.
    """
    import torch

    def moved(part: torch.Tensor) -> torch.Tensor:
        wide = part.float() if part.element_size() < 4 else part
        chance = torch.rand_like(wide).add_(torch.rand_like(wide)).sub_(1)
        # the distance to the next number is two roundoffs of the power of two below an element
        unit = _unit(part.dtype)
        chance.mul_(unit).ldexp_(wide.frexp().exponent)
        # nothing was rounded off a count, a clamp's bound or zero, as far as can be seen
        is_exact = (wide == wide.round()) & (wide.abs() <= unit**-0.5)
        return torch.where(is_exact, wide, wide + chance).to(part.dtype)

    made: torch.Tensor = changed(value, moved)
    return made


class Rerounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Rounds the floats that come of each operator otherwise, but of one that rounds nothing."""

    # `torch.cond` and its like run as they are, without a look inside
    supports_higher_order_operators = True

    def __init__(self, poles: Poles | None = None) -> None:
        """Round each operator of what runs in this context; with `poles`, denominators come as near to zero as these let them."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._poles = poles or Poles()
        self._poles.begin()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; round what comes of it otherwise, in its place where it was written into what there was."""
        import torch

        given = kwargs or {}
        if not hasattr(func, "overloadpacket") or func.is_view or not _rounds(func, args, given):
            return func(*args, **given)
        args = self._poles.nearer(func.overloadpacket.__name__.rstrip("_"), args)
        written = [(value, value.clone()) for value in _written(func, args, given) if _can_be_moved(value)]
        found = func(*args, **given)
        for value, before in written:
            # the rest of what there was has its rounding already
            value.copy_(torch.where(value == before, value, rerounded(value)))
        kept = {id(value) for value, _ in written}
        return tree_map(lambda value: rerounded(value) if _can_be_moved(value) and id(value) not in kept else value, found)


def _can_be_moved(value: Any) -> bool:
    import torch

    floats = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128)
    return isinstance(value, torch.Tensor) and value.dtype in floats


def _rounds(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operator's floats may be rounded; what has no tensor to compute with makes constants or draws numbers."""
    import torch

    name = func.overloadpacket.__name__.rstrip("_")
    tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
    if name in ASSERTING or (name in COPYING and counts(tensors, kwargs)):
        raise OutOfRangeError(name)
    if not tensors or name in MOVING or name in CHOOSING:
        return False
    if name in COPYING:
        return tensors[-1].is_floating_point() and _unit(_target(tensors, kwargs)) > _unit(tensors[-1].dtype)
    named = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
    return name not in PUTTING or bool(named.get("accumulate") or named.get("reduce"))


def _target(tensors: list[torch.Tensor], kwargs: Any) -> torch.dtype:
    """The dtype that a tensor is copied to: asked for, that of the tensor that is written to, or its own."""
    asked: torch.dtype = kwargs.get("dtype") or tensors[0].dtype
    return asked


def counts(tensors: list[torch.Tensor], kwargs: Any) -> bool:
    """Whether floats are copied to whole numbers, which may be indices."""
    import torch

    target = _target(tensors, kwargs)
    return tensors[-1].is_floating_point() and not (target.is_floating_point or target.is_complex or target == torch.bool)


def _unit(dtype: torch.dtype) -> float:
    return ROUNDOFF.get(str(dtype).removeprefix("torch."), 0.0)


def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The arguments that an operator writes to."""
    named = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
    places = [one.name for one in func._schema.arguments if one.alias_info is not None and one.alias_info.is_write]
    return tree_leaves([named.get(place) for place in places])
