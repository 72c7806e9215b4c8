"""Layers for `kernelize` of the Hugging Face library kernels: classes without state, whose forward it gives to the user's modules."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from tools.models.runtime.config import config_of
from tools.models.runtime.known import UNLIKE, answered
from tools.models.runtime.patching import Installed, Place, answer

_INSTALLED: WeakKeyDictionary[nn.Module, Installed] = WeakKeyDictionary()
"""Of each module that was called: which entries are made for its configuration."""


def layer(title: str, places: Sequence[Place], arguments: Sequence[tuple[str, str]]) -> type[nn.Module]:
    """Make the layer for modules of the class `title`, whose forward has these `arguments`: name and kind of each."""
    own = [one for one in places if one.title == title]

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            # a compiler cannot look up what was made for a module's configuration: there `apply` is for
            return type(self).forward(self, *args, **kwargs)
        if (found := answered(self, args, kwargs)) is not UNLIKE:
            return found
        installed = _INSTALLED.get(self)
        if installed is None:
            installed = _INSTALLED[self] = _installed(self, title, own)
        return answer(self, installed, args, kwargs)

    kinds: Any = inspect.Parameter
    named = [inspect.Parameter("self", kinds.POSITIONAL_OR_KEYWORD)]
    named += [inspect.Parameter(name, getattr(kinds, kind)) for name, kind in arguments]
    any_forward: Any = forward
    any_forward.__signature__ = inspect.Signature(named)
    return type(title, (nn.Module,), {"forward": forward, "has_backward": False, "can_torch_compile": False})


def _installed(module: nn.Module, title: str, places: Sequence[Place]) -> Installed:
    config = config_of(module)
    entries = tuple(entry for one in places if one.config == config for entry in one.entries)
    original: Any = type(module).forward
    return Installed(entries, title, original)
