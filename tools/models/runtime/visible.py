"""Lets a compiler see the Triton kernels of an operator, as `torch.library.triton_op` does: it takes their launches into its own graph."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_TRACING = threading.RLock()
_SHOWN = [True]


def show(*, shown: bool) -> None:
    """Say whether compilers see kernels from now on; else an operator is one opaque call to them."""
    _SHOWN[0] = shown


def shows() -> bool:
    """Whether compilers see kernels."""
    return _SHOWN[0]


def make_visible(library: Any, operator: str, body: Callable[..., Sequence[torch.Tensor] | None]) -> None:
    """Have `operator` taken apart into `body` where a compiler makes its graph functional.

    torch.export keeps it whole, and so does a `body` that gives None.
    """
    from torch._subclasses.functional_tensor import FunctionalTensorMode

    def rule(mode: Any, op: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = None
        if _SHOWN[0] and not _exporting():
            with mode:
                found = body(*args)
        return mode.__torch_dispatch__(op, types, args, kwargs) if found is None else found

    torch.library.register_torch_dispatch(operator, FunctionalTensorMode, rule, lib=library)


def launched_into_graph(kernels: ModuleType, launches: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """Have the launches of a kernel's file written into the graph that is being traced."""
    return launches_by(kernels, launches, torch.library.wrap_triton)


@contextlib.contextmanager
def launches_by(kernels: ModuleType, launches: Sequence[str], wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Have something else in the place of the kernels that a file launches."""
    with _TRACING:
        own = {name: getattr(kernels, name) for name in launches}
        try:
            for name, kernel in own.items():
                setattr(kernels, name, wrap(kernel))
            yield
        finally:
            for name, kernel in own.items():
                setattr(kernels, name, kernel)


def can_be_seen(kernels: ModuleType, launches: Sequence[str]) -> bool:
    """Whether a file's kernels are Triton's own, not interpreted ones."""
    from triton.runtime import JITFunction

    return bool(launches) and all(isinstance(getattr(kernels, name, None), JITFunction) for name in launches)


def untraced(make: Callable[[], Any]) -> Any:
    """Make real tensors while a compiler traces."""
    with _disable_current_modes():
        return make()


def _exporting() -> bool:
    from torch.export import _trace

    asked = getattr(_trace, "custom_triton_ops_decomposition_disabled", None)
    return bool(asked is not None and asked())
