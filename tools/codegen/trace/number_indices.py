"""Tracing through positions that are numbers of tensors, as `boxes[scores.argmax()]`: they are read on the device, not by the host.

PyTorch takes such a number out of its tensor and selects by it. Here the element is gathered, and what is set is put there.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

WHOLE = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})
WITH_VALUE = 3
"""Arguments of a call that sets."""


class LostWriteError(Exception):
    """A reference writes to what it has picked, where PyTorch would have given it a view."""


class NumberIndices(TorchFunctionMode):
    """Has elements at positions that tensors hold gathered; torch.export runs inside of it."""

    def __init__(self) -> None:
        """Begin a trace."""
        super().__init__()
        self._picked: dict[int, tuple[torch.Tensor, int]] = {}
        """What was gathered and not put back, and how often it had been written to."""

    def __exit__(self, *error: Any) -> None:
        """End a trace; what was written to a copy is missed where it came from."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        if error[0] is None and any(found._version != version for found, version in self._picked.values()):
            raise LostWriteError("it writes to what it picked by a number of a tensor: set `x[i] = ...`")

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Take the place of an index with such numbers, and leave all else alone."""
        index = _numbered(func, args)
        if not index:
            return func(*args, **(kwargs or {}))
        if len(args) == WITH_VALUE:
            self._picked.pop(id(args[2]), None)
            return _put(args[0], index, args[2])
        found = _gathered(args[0], index)
        self._picked[id(found)] = found, found._version
        return found


@contextmanager
def numbers_read_there() -> Iterator[None]:
    """Export with `NumberIndices`, which torch's own mode does not come before."""
    own: Any = getattr(importlib.import_module("torch._export.non_strict_utils"), "_NonStrictTorchFunctionHandler", None)
    before: Any = getattr(own, "_override", None)

    def override(self: Any, func: Any, args: Any, kwargs: Any) -> Any:
        return (func, args, kwargs) if _numbered(func, args) else before(self, func, args, kwargs)

    if before is not None:
        own._override = override
    try:
        with NumberIndices():
            yield
    finally:
        if before is not None:
            own._override = before


def _numbered(func: Any, args: Any) -> tuple[Any, ...]:
    """Return the index of a call that picks or sets by such numbers; none of any other."""
    if getattr(func, "__name__", "") not in ("__getitem__", "__setitem__") or not isinstance(args[0], torch.Tensor):
        return ()
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    return index if any(map(_is_number, index)) and all(map(_is_plain, index)) else ()


def _gathered(of: torch.Tensor, index: tuple[Any, ...]) -> Any:
    places = dict(_places(index, of.dim()))
    at = [places.get(dim) for dim in range(max(places) + 1)]
    found = torch.ops.aten.index.Tensor(of, at)
    rest = tuple(one for one in index if not _is_number(one))
    return found[rest] if rest else found


def _put(of: torch.Tensor, index: tuple[Any, ...], value: Any) -> None:
    every = tuple(slice(None) if _is_number(one) else one for one in index)
    view = of if all(one == slice(None) for one in every) else of[every]
    # whole numbers and new dimensions of an index move the dimensions behind them
    marked = [one for one in _filled(index, of.dim()) if type(one) is not int]
    at = [one if _is_number(one) else None for one in marked]
    while at[-1] is None:
        at.pop()
    value = value if isinstance(value, torch.Tensor) else torch.full((), value, dtype=of.dtype, device=of.device)
    kept = view.dim() - sum(one is not None for one in at)
    while value.dim() > kept and value.shape[0] == 1:
        value = value[0]
    torch.ops.aten.index_put_.default(view, at, value.to(of.dtype))


def _places(index: tuple[Any, ...], rank: int) -> Iterator[tuple[int, torch.Tensor]]:
    """List the dimensions that numbers are positions in, and the numbers."""
    taken = [one for one in _filled(index, rank) if one is not None]
    yield from ((dim, one) for dim, one in enumerate(taken) if _is_number(one))


def _filled(index: tuple[Any, ...], rank: int) -> list[Any]:
    """Write an ellipsis as the slices that it stands for."""
    named = sum(one is not None and one is not Ellipsis for one in index)
    found: list[Any] = []
    for one in index:
        found += [slice(None)] * (rank - named) if one is Ellipsis else [one]
    return found


def _is_number(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and not index.dim() and index.dtype in WHOLE


def _is_plain(one: Any) -> bool:
    """Whether a part of an index is such a number, a whole number, a slice without numbers of tensors, or a new dimension."""
    if isinstance(one, slice):
        return not any(isinstance(end, torch.Tensor) for end in (one.start, one.stop, one.step))
    return one is None or one is Ellipsis or type(one) is int or _is_number(one)
