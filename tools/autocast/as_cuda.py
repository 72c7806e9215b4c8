"""Has torch.autocast of the CPU do what that of CUDA does: it rounds for other operators there, and kernels are made for a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tools.autocast.rules import REFUSED, RULES, castable, dtype_for, flat

_KEY = "AutocastCPU"
_HELD: list[Any] = []
"""What holds the rules of this process: with it they go."""


def round_as_cuda() -> None:
    """Give this process, which runs a model on the CPU for a GPU, the rules of CUDA."""
    if _HELD:
        return
    make: Any = torch.library.Library
    library = make("aten", "IMPL")
    _HELD.append(library)
    known: Any = torch._C
    own = set(known._dispatch_get_registrations_for_dispatch_key(_KEY))
    with warnings.catch_warnings():
        # that an operator has another rule now is what is wanted
        warnings.simplefilter("ignore")
        for name in sorted(own | RULES.keys()):
            if (found := _overload(name)) is not None and name != f"aten::{REFUSED}":
                # what CUDA leaves as it is goes past autocast
                made = _rounding(name, found) if name in RULES else torch.library.fallthrough_kernel
                library.impl(found, made, _KEY, allow_override=True)


@contextmanager
def rounding_as_cuda() -> Iterator[None]:
    """Make a context in which it is so."""
    held = bool(_HELD)
    round_as_cuda()
    try:
        yield
    finally:
        if not held:
            round_as_cpu()


def round_as_cpu() -> None:
    """Give the CPU its own rules back."""
    for library in _HELD:
        library._destroy()
    _HELD.clear()


def _overload(name: str) -> Any:
    """Find an operator by its name; None where this torch has none of it, or it is not ATen's."""
    namespace, _, full = name.partition("::")
    packet, _, overload = full.partition(".")
    if namespace != "aten" or not hasattr(torch.ops.aten, packet):
        return None
    return getattr(getattr(torch.ops.aten, packet), overload or "default", None)


def _rounding(name: str, operator: Any) -> Callable[..., Any]:
    known: Any = torch._C
    below = known.DispatchKeySet(known.DispatchKey.AutocastCPU)

    def run(*args: Any, **kwargs: Any) -> Any:
        given = [castable(one) for one in flat((*args, *kwargs.values())) if isinstance(one, torch.Tensor)]
        asked = any(isinstance(one, torch.dtype) for one in (*args, *kwargs.values()))
        with known._ExcludeDispatchKeyGuard(below):
            dtype = dtype_for(name, given, torch.get_autocast_dtype("cpu"), asked=asked)
            if dtype is not None:
                args, kwargs = _cast(args, dtype), {key: _cast(value, dtype) for key, value in kwargs.items()}
            return operator(*args, **kwargs)

    return run


def _cast(tree: Any, dtype: torch.dtype) -> Any:
    if isinstance(tree, list | tuple):
        return type(tree)(_cast(item, dtype) for item in tree)
    return tree.to(dtype) if isinstance(tree, torch.Tensor) and castable(tree) else tree
