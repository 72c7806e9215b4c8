"""A module's configuration as text: what `apply` compares, so that a kernel never takes the place of a module it was not made for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

PLACES = ("layer_idx", "layer_index", "layer_id", "block_idx", "idx", "index")
"""Attributes that say where a module stands among its like. Whether they matter all the same, a capture finds by comparing results."""
PASSING = ("training", "forward", *PLACES)
"""Attributes that do not say how a module works: `kernelize` and its like replace forwards."""
PLAIN = (bool, int, float, str, type(None))


def config_of(module: nn.Module) -> str:
    """Write classes, plain attributes, functions by name, and parameters and buffers with shapes and dtypes, of all parts."""
    return "; ".join(part for path, each in module.named_modules() for part in _part(path, each))


def _part(path: str, module: nn.Module) -> Iterator[str]:
    # without the name of its Python file: a script that is run calls its own `__main__`
    yield f"{path}={type(module).__qualname__}"
    for name, value in sorted(vars(module).items()):
        if not name.startswith("_") and name not in PASSING and (text := _plain(value)):
            yield f"{path}.{name}={text}"
    held = {**module._parameters, **module._buffers}
    yield from (f"{path}.{name}:{value.dtype}{list(value.shape)}" for name, value in held.items() if value is not None)


def _plain(value: Any) -> str:
    """Write a value that says how a module works; empty for what may be anything."""
    if type(value) in PLAIN:
        return repr(value)
    if type(value) in (tuple, list) and all(type(item) in PLAIN for item in value):
        return repr(value)
    return getattr(value, "__qualname__", "") if callable(value) and not isinstance(value, nn.Module) else ""
