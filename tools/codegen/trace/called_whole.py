"""Tracing through functions that look at their data, such as a check of variances, or that PyTorch's fake tensors do not know.

Where torch.export fails in such a function, its call is taken as one operator, which is left to PyTorch. What shapes it gives is found
out by calling it, with zeros and with ones: they must be the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils import _pytree as pytree

from tools.codegen.ir.graph import Called, TensorMeta

OPERATOR = "kernelwright.called.default"
"""Such a call, as a graph names it."""
MOST = 1 << 24
"""Elements with which a function is called to see what shapes it gives."""


@dataclass(frozen=True)
class Call:
    """A call of a function."""

    path: str
    """How the function is found, e.g. `torch.cov`."""
    leaves: tuple[Any, ...]
    """Its arguments, laid out flat; None in the place of a tensor."""
    places: tuple[int, ...]
    """Where tensors are among them."""
    spec: Any
    shapes: tuple[tuple[tuple[int, ...], torch.dtype], ...]
    """Of its results."""

    def arguments(self, tensors: Any) -> tuple[Any, Any]:
        """Fill tensors in: positional arguments and those by name."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return args, kwargs

    def node(self, name: str, tensors: Any, tree: Callable[[Any], Any], outputs: tuple[TensorMeta, ...]) -> Called:
        """Make the operator."""
        args, kwargs = self.arguments(tensors)
        short = self.path.rsplit(".", 1)[-1]
        return Called(
            name, f"torch.called_{short}.default", tuple(map(tree, args)), {k: tree(v) for k, v in kwargs.items()}, outputs, self.path
        )


CALLS: list[Call] = []
"""Those of this process, by the number that a graph has for each."""


@cache
def _operator() -> Any:
    """Register the operator once."""
    make: Any = torch.library.Library
    library = make("kernelwright", "FRAGMENT")
    library.define("called(Tensor[] tensors, int number) -> Tensor[]")
    library.impl("called", _results, "CompositeExplicitAutograd")
    torch.library.register_fake("kernelwright::called", _results, lib=library)
    return library, torch.ops.kernelwright.called


def _results(tensors: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    """Give tensors of the shapes that are known; their contents are of no use to a trace."""
    device = tensors[0].device
    return [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in CALLS[number].shapes]


class CalledWhole(TorchFunctionMode):
    """Takes calls of functions that cannot be traced as one operator; torch.export runs inside of it."""

    def __init__(self) -> None:
        """Begin a trace."""
        super().__init__()
        self.used = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function; where it looks at its data, take it as one operator."""
        kwargs = kwargs or {}
        try:
            return func(*args, **kwargs)
        except Exception:
            call, tensors = _call(func, args, kwargs)
            if call is None:
                raise
        self.used = True
        CALLS.append(call)
        found = _operator()[1](tensors, len(CALLS) - 1)
        return found[0] if len(found) == 1 else tuple(found)


def _call(func: Any, args: Any, kwargs: Any) -> tuple[Call | None, list[torch.Tensor]]:
    """Describe a call of which results and their shapes are tensors that its data do not decide; None for any other."""
    path = _path(func)
    leaves, spec = pytree.tree_flatten((args, kwargs))
    places = tuple(place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor))
    tensors = [leaves[place] for place in places]
    sizes = [tuple(tensor.shape) for tensor in tensors]
    if not path or not tensors or any(not isinstance(size, int) for shape in sizes for size in shape):
        return None, []
    if sum(tensor.numel() for tensor in tensors) > MOST:
        return None, []
    given = tuple(None if place in places else leaf for place, leaf in enumerate(leaves))
    found = {_shapes(func, Call(path, given, places, spec, ()), tensors, number) for number in (0, 1)}
    shapes = found.pop()
    return (None, []) if found or not shapes else (Call(path, given, places, spec, shapes), tensors)


def _shapes(func: Any, call: Call, tensors: list[torch.Tensor], number: int) -> tuple[tuple[tuple[int, ...], torch.dtype], ...]:
    """Call a function with tensors of one number, and give the shapes of its results; nothing where it fails, or gives anything else."""
    from torch.utils._python_dispatch import _disable_current_modes

    with suppress(Exception), _disable_current_modes(), torch.no_grad():
        filled = [torch.full(tuple(tensor.shape), number, dtype=tensor.dtype) for tensor in tensors]
        args, kwargs = call.arguments(filled)
        results = func(*args, **kwargs)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        if all(isinstance(one, torch.Tensor) for one in results):
            return tuple((tuple(one.shape), one.dtype) for one in results)
    return ()


def _path(func: Any) -> str:
    """Say how a function of PyTorch's is found by name; nothing where it is not, or writes to what it is given."""
    path = resolve_name(func) or ""
    short = path.rsplit(".", 1)[-1]
    try:
        found = operator.attrgetter(path.removeprefix("torch."))(torch)
    except AttributeError:
        return ""
    return path if found is func and path.startswith("torch.") and not short.endswith("_") else ""
