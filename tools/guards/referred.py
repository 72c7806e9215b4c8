"""The part of a guard by which calls go to the reference: `text.py` copies everything below this docstring where that is asked for."""

import weakref
from collections.abc import Callable
from typing import Any

import torch

references: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def referred(module: Any, inputs: tuple[Any, ...], reference: Callable[[], Any]) -> Any:
    """Call the reference with the module's own parameters and buffers: gradients and updates reach them."""
    if module not in references:
        given, named = module.guard_arguments
        with torch.random.fork_rng():
            references[module] = reference()(*given, **named)
    made = references[module].train(module.training)
    for name, _ in [*made.named_parameters(), *made.named_buffers()]:
        owner, _, leaf = name.rpartition(".")
        mine, theirs = module.get_submodule(owner), made.get_submodule(owner)
        for kind in ("_parameters", "_buffers"):
            if leaf in getattr(theirs, kind) and leaf in getattr(mine, kind):
                getattr(theirs, kind)[leaf] = getattr(mine, kind)[leaf]
    return made(*inputs)
