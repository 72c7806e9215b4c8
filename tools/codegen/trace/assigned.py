"""Tensors that a module keeps as plain attributes: its forward may write to them or assign them, and `module.to(device)` leaves them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn


def plain_tensors(module: nn.Module) -> list[tuple[str, nn.Module, str, torch.Tensor]]:
    """List them: the path, the module that has it, its name there and the tensor."""
    import torch

    return [
        (f"{path}.{name}" if path else name, part, name, value)
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, torch.Tensor)
    ]


@contextmanager
def tensors_as_buffers(module: nn.Module) -> Iterator[None]:
    """Have torch.export see buffers in them, which a forward may write to; at the end they are the tensors that they were before."""
    kept = plain_tensors(module)
    for _, part, name, value in kept:
        delattr(part, name)
        part.register_buffer(name, value, persistent=False)
    try:
        yield
    finally:
        for _, part, name, value in kept:
            delattr(part, name)
            setattr(part, name, value)
