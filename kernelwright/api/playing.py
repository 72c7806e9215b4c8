"""Plays the calls of a loaded kernel again: its host code decides by shapes alone, so it is asked twice for each look of the tensors.

The first call with tensors of a look goes through the file's guard, the second is recorded, all others are played: they allocate, call
PyTorch and launch what the second did, past Triton's look at every argument. Small kernels take as long in use as their host code.
"""

from __future__ import annotations

import sys
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


def play_calls(module: nn.Module, source: str) -> nn.Module:
    """Have a module play its calls again, where its file's host code does nothing but call PyTorch and launch Triton kernels."""
    names = launches(unguarded(source)) if REFERS not in source.partition(MARK)[2] else ()
    if names and can_be_seen(sys.modules[type(module).__module__], names):
        module.forward = Calls(module, names)
    return module


class Calls:
    """Stands in the place of a module's forward."""

    def __init__(self, module: nn.Module, names: Sequence[str]) -> None:
        """Take a module, and the kernels that its file launches."""
        self._module, self._names, self._tries = module, tuple(names), MOST_TRIES
        self._known: list[Known] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy it without what it knows: plans hold the machine code of this process."""
        return Calls, (self._module, self._names)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Play a call that looks like one that was recorded; any other goes the ordinary way."""
        ordinary = type(self._module).forward
        if not self._tries or named or not _is_plain(inputs):
            return ordinary(self._module, *inputs, **named)
        tensors = [*inputs, *_held(self._module)]
        if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
            return ordinary(self._module, *inputs)
        state = _state(self._module)
        place = next((at for at, one in enumerate(self._known) if one.state == state and one.is_like(*tensors)), None)
        if place is None:
            result = ordinary(self._module, *inputs)
            self._keep(state, inputs, tensors)
            return result
        known = self._known[place]
        if known.play is None:
            return self._recorded(place, inputs, tensors)
        found = known.play(*tensors)
        if found is None:
            # on another device, at an odd address, or while somebody listens to launches
            return ordinary(self._module, *inputs)
        return found[0] if known.is_alone else tuple(found)

    def _keep(self, state: tuple[Any, ...], inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> None:
        # the guard lays out anew what is not contiguous
        like = guard_of(tensors) if all(one.is_contiguous() for one in inputs) else None
        if like is not None:
            self._known = [Known(state, like), *self._known[: MOST_LOOKS - 1]]

    def _recorded(self, place: int, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> Any:
        """Run the file's own forward, and keep what plays it."""
        module, known = self._module, self._known.pop(place)
        forward = _own_forward(type(module).forward).__get__(module)
        result, found = recorded(forward, sys.modules[type(module).__module__], self._names, inputs, tensors[len(inputs) :])
        results = [result] if isinstance(result, torch.Tensor) else list(result) if type(result) is tuple else []
        try:
            if not results or not all(isinstance(one, torch.Tensor) and one.is_contiguous() for one in results):
                raise UnplannedError("its results have another form")
            play = played(found, results)
            if any(found.roots[found.slot(one)][0] < found.given for one in results):
                raise UnplannedError("a result lies in what is given")
            self._known.insert(place, known._replace(play=play, is_alone=isinstance(result, torch.Tensor)))
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
