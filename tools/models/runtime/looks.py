"""What guards and kernels ask of tensors beside their addresses, asked of all of a call at once by torch's own guard in C++."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

Look = tuple[tuple[Any, ...], ...]
"""Of each tensor: class, shape, stride, dtype and device."""


def look_of(tensors: Sequence[torch.Tensor]) -> Look:
    """Say all that guards and kernels ask of tensors, but their addresses."""
    return tuple((type(one), tuple(one.shape), one.stride(), one.dtype, one.device) for one in tensors)


def marks_of(tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """Say what a guard asks of tensors beside their look: gradients, and how the dispatcher takes them."""
    known: Any = torch._C
    return tuple((one.requires_grad, known._dispatch_keys(one).raw_repr()) for one in tensors)


def guard_of(tensors: Sequence[torch.Tensor]) -> Callable[..., bool] | None:
    """Make what says whether tensors look like these, want gradients like these and are dispatched alike; None with another torch.

    It is what torch.compile guards its code with: for 200 tensors it takes less time than for five in Python.
    """
    try:
        from torch._C._dynamo import guards

        known: Any = guards
        sizes, strides = [list(one.shape) for one in tensors], [list(one.stride()) for one in tensors]
        check: Callable[..., bool] = known.TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
        # an interface that asks for nothing, or cannot be asked, is not the one that is known here
        return check if check(*tensors) and not check(tensors[0].unsqueeze(0), *tensors[1:]) else None
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):
        return None


def asked_one_by_one(look: Look, name: Callable[[Any], str]) -> Iterator[str]:
    """Write the same questions in Python, for tensors called t0, t1 and so on; `name` gives the text a name for a value."""
    for place, (kind, shape, stride, dtype, device) in enumerate(look):
        own = f"t{place}"
        yield f"type({own}) is {name(kind)}"
        yield f"{own}.shape == {name(shape)}"
        if stride == _steps(shape) and all(size > 1 for size in shape):
            # the same question, in half the time
            yield f"{own}.is_contiguous()"
        else:
            yield f"{own}.stride() == {name(stride)} and not {own}.is_neg()"
        yield f"{own}.dtype is {name(dtype)}"
        yield f"{own}.device == {name(device)}"
        yield from [f"not {own}.is_conj()"] if dtype.is_complex else []
    wanted = " or ".join(f"t{place}.requires_grad" for place in range(len(look)))
    yield f"not (grads() and ({wanted}))"


def _steps(shape: Sequence[int]) -> tuple[int, ...]:
    """Work out the strides of a contiguous tensor."""
    steps = itertools.accumulate(reversed(shape[1:]), operator.mul, initial=1)
    return tuple(reversed(list(steps)))[-len(shape) :] if shape else ()
