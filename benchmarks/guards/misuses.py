"""Ways to use a module that its kernel was not made for, each made out of a use that is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch


@dataclass(frozen=True)
class Use:
    """How a module is made and called."""

    name: str
    """What is wrong with it, e.g. `x: another rank`."""
    init: tuple[Any, ...]
    inputs: tuple[Any, ...]
    gradients: bool = False
    """Whether gradients are on while it is called."""
    module: Callable[[Any], Any] = field(default=lambda module: module)
    """What is done to the module, which has its parameters by then."""


TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "another rank": lambda x: x[None],
    "a lower rank": lambda x: x[0].clone() if x.dim() else None,
    "another dtype": lambda x: x.double() if x.dtype == torch.float32 else x.float(),
    "a half dtype": lambda x: x.half() if x.dtype == torch.float32 else None,
    "empty": lambda x: x[:0] if x.dim() else None,
    "empty at the end": lambda x: x[..., :0] if x.dim() > 1 else None,
    "one more": lambda x: torch.cat([x, x[-1:]]) if x.dim() else None,
    "one less at the end": lambda x: x[..., :-1].contiguous() if x.dim() > 1 and x.shape[-1] > 1 else None,
    "to be broadcast": lambda x: x[..., :1].contiguous() if x.dim() > 1 and x.shape[-1] > 1 else None,
    "not contiguous": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else None,
    "every second element": lambda x: torch.stack([x, x], -1)[..., 0],
    "expanded": lambda x: x[:1].expand(x.shape) if x.dim() else None,
    "off by one element": lambda x: torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape),
    "on another device": lambda x: x.to("meta"),
    "sparse": lambda x: x.to_sparse() if x.dim() == 2 else None,
}
"""What is done to one argument; None where that cannot be done to it."""


def misuses(right: Use) -> Iterator[Use]:
    """List wrong uses, and uses that are right but unusual, of a module that is used rightly in `right`."""
    for place, value in enumerate(right.inputs):
        if isinstance(value, torch.Tensor):
            for name, change in TENSORS.items():
                changed = change(value)
                if changed is not None:
                    yield replace(right, name=f"argument {place}: {name}", inputs=_with(right.inputs, place, changed))
            if value.is_floating_point():
                wanting = value.clone().requires_grad_()
                yield replace(right, name=f"argument {place}: a gradient", inputs=_with(right.inputs, place, wanting), gradients=True)
            yield replace(right, name=f"argument {place}: a list", inputs=_with(right.inputs, place, value.tolist()))
        elif isinstance(value, int | float):
            yield replace(right, name=f"argument {place}: another value", inputs=_with(right.inputs, place, value + 1))
    yield replace(right, name="a gradient of the parameters", gradients=True)
    yield replace(right, name="another mode", module=lambda module: module.train(not module.training))
    yield replace(right, name="parameters in double", module=lambda module: module.double())
    yield replace(right, name="channels last", module=lambda module: module.to(memory_format=torch.channels_last))
    for place, value in enumerate(right.init):
        if isinstance(value, bool):
            yield replace(right, name=f"constructor {place}: the other", init=_with(right.init, place, not value))
        elif isinstance(value, int | float):
            yield replace(right, name=f"constructor {place}: one less", init=_with(right.init, place, value - 1))


def _with(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])
