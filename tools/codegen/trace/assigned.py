"""Tensors that a module keeps as plain attributes, and writes to or assigns in its forward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@contextmanager
def tensors_as_buffers(module: nn.Module) -> Iterator[None]:
    """Have torch.export see buffers in them, which a forward may write to; at the end they are the tensors that they were before."""
    import torch

    kept = [(part, name, value) for part in module.modules() for name, value in vars(part).items() if isinstance(value, torch.Tensor)]
    for part, name, value in kept:
        delattr(part, name)
        part.register_buffer(name, value, persistent=False)
    try:
        yield
    finally:
        for part, name, value in kept:
            delattr(part, name)
            setattr(part, name, value)
