"""Plays the calls of a loaded kernel again: its host code decides by shapes alone, so it is asked twice for each look of the tensors.

The first call with tensors of a look goes through the file's guard, the second is recorded, all others are played: they allocate, call
PyTorch and launch what the second did, past Triton's look at every argument. Small kernels take as long in use as their host code.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tools.guards.text import MARK, unguarded
from tools.models.packaging.launches import launches
from tools.models.runtime.known import is_unheard
from tools.models.runtime.launching import UnplannedError
from tools.models.runtime.looks import guard_of
from tools.models.runtime.plans import Play, played
from tools.models.runtime.recording import recorded
from tools.models.runtime.visible import can_be_seen

if TYPE_CHECKING:
    from types import ModuleType

    from torch import nn

MOST_LOOKS = 8
"""Looks that are known at a time; the one that was new longest ago goes first."""
MOST_TRIES = 3
"""Recordings that fail before it is known that none can be played again."""
REFERS = "referred(self,"
"""What the guard of a file has that leaves calls to the reference."""


class Known(NamedTuple):
    """A look that the guard let through."""

    state: tuple[Any, ...]
    is_like: Callable[..., bool]
    play: Play | None = None
    """What plays a call; None until one is recorded."""
    is_alone: bool = True
    """Whether the result is one tensor, and no tuple."""


def play_calls(kind: type[nn.Module], source: str) -> None:
    """Have modules of a kind play calls again, where its file's host code does nothing but call PyTorch and launch Triton kernels."""
    names = launches(unguarded(source)) if REFERS not in source.partition(MARK)[2] else ()
    if names and can_be_seen(sys.modules[kind.__module__], names):
        calls = Calls(kind.forward, sys.modules[kind.__module__], names)

        @functools.wraps(kind.forward)
        def forward(self: nn.Module, *inputs: Any, **named: Any) -> Any:
            return calls(self, *inputs, **named)

        kind.forward = forward


class Calls:
    """Stands in the place of a file's forward."""

    def __init__(self, ordinary: Callable[..., Any], file: ModuleType, names: Sequence[str]) -> None:
        """Take the forward with its guard, the file, and the kernels that it launches."""
        self._ordinary, self._own, self._file, self._names = ordinary, _own_forward(ordinary), file, tuple(names)
        self._tries = MOST_TRIES
        self._known: weakref.WeakKeyDictionary[nn.Module, list[Known]] = weakref.WeakKeyDictionary()
        """By module, not in it: a copy begins anew."""

    def __call__(self, module: nn.Module, *inputs: Any, **named: Any) -> Any:
        """Play a call that looks like one that was recorded; any other goes the ordinary way."""
        if not self._tries or named or not _is_plain(inputs):
            return self._ordinary(module, *inputs, **named)
        tensors = [*inputs, *_held(module)]
        if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
            return self._ordinary(module, *inputs)
        looks, state = self._known.setdefault(module, []), _state(module)
        place = next((at for at, one in enumerate(looks) if one.state == state and one.is_like(*tensors)), None)
        if place is None:
            result = self._ordinary(module, *inputs)
            # the guard lays out anew what is not contiguous
            if (like := guard_of(tensors) if all(one.is_contiguous() for one in inputs) else None) is not None:
                looks[:] = [Known(state, like), *looks[: MOST_LOOKS - 1]]
            return result
        known = looks[place]
        if known.play is None:
            del looks[place]
            return self._recorded(module, known, inputs, tensors)
        found = known.play(*tensors)
        if found is None:
            # on another device, at an odd address, or while somebody listens to launches
            return self._ordinary(module, *inputs)
        return found[0] if known.is_alone else tuple(found)

    def _recorded(self, module: nn.Module, known: Known, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> Any:
        """Run the file's own forward, and keep what plays it."""
        result, found = recorded(self._own.__get__(module), self._file, self._names, inputs, tensors[len(inputs) :])
        results = [result] if isinstance(result, torch.Tensor) else list(result) if type(result) is tuple else []
        try:
            if not results or not all(isinstance(one, torch.Tensor) and one.is_contiguous() for one in results):
                raise UnplannedError("its results have another form")
            play = played(found, results)
            if any(found.roots[found.slot(one)][0] < found.given for one in results):
                raise UnplannedError("a result lies in what is given")
            self._known[module].insert(0, known._replace(play=play, is_alone=isinstance(result, torch.Tensor)))
        except UnplannedError:
            self._tries -= 1
        return result


def _is_plain(inputs: Sequence[Any]) -> bool:
    """Whether a call is of tensors, and nobody rounds, traces or listens."""
    known: Any = torch._C
    every = bool(inputs) and all(type(one) is torch.Tensor for one in inputs)
    return every and not known._is_any_autocast_enabled() and not torch.compiler.is_compiling() and is_unheard()


def _held(module: nn.Module) -> list[torch.Tensor]:
    """List parameters and buffers."""
    if not module._modules:
        return [one for kept in (module._parameters, module._buffers) for one in kept.values() if one is not None]
    return [*module.parameters(), *module.buffers()]


def _state(module: nn.Module) -> tuple[Any, ...]:
    """List what a forward may decide by beside tensors: the mode, and plain values that its parts have."""
    parts = module.modules() if module._modules else (module,)
    return tuple([value for part in parts for value in vars(part).values() if type(value) in (bool, int, float, str)])


def _own_forward(forward: Any) -> Any:
    """Find the forward that a guard asks."""
    while forward.__qualname__ != "ModelNew.forward":
        inner = (cell.cell_contents for cell in forward.__closure__ or ())
        forward = next(one for one in inner if isinstance(one, FunctionType) and one.__name__.rstrip("_") == "forward")
    return forward
