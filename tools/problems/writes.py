"""What a call of a reference writes to: its arguments, and what its module holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.nn.modules.batchnorm import _NormBase

from tools.records.problem import is_statistic


def versions(values: Sequence[Any]) -> list[int]:
    """Count the writes to each tensor, or to a view of it, as torch does."""
    return [value._version if isinstance(value, torch.Tensor) else 0 for value in values]


def written_since(values: Mapping[str, Any], before: Sequence[int]) -> dict[str, torch.Tensor]:
    """Give the tensors that were written to since their writes were counted."""
    counted = zip(values.items(), before, strict=True)
    return {name: value for (name, value), count in counted if isinstance(value, torch.Tensor) and value._version != count}


def sharing(outputs: Sequence[torch.Tensor], written: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """Name the outputs, by their places, that lie in memory of what was written to."""
    storages = {value.untyped_storage()._cdata for value in written}
    return tuple(place for place, value in enumerate(outputs) if storages and value.untyped_storage()._cdata in storages)


def module_state(module: nn.Module) -> dict[str, tuple[torch.Tensor, int]]:
    """Give parameters and buffers of a state dict by name, with the writes to each."""
    return {name: (value, value._version) for name, value in _held(module).items()}


def changed_of(module: nn.Module, before: dict[str, tuple[torch.Tensor, int]]) -> dict[str, torch.Tensor]:
    """Give those that were written to, or replaced, since they were as `before`, running statistics of PyTorch's norms left out."""
    now = _held(module)
    changed = (name for name, (value, version) in before.items() if now[name] is not value or now[name]._version != version)
    return {name: now[name] for name in changed if not (is_statistic(name) and _is_of_a_norm(module, name))}


def _is_of_a_norm(module: nn.Module, name: str) -> bool:
    """Whether a norm of PyTorch's holds a buffer, or a part of an exported module, which no longer says what it was."""
    return isinstance(module.get_submodule(name.rpartition(".")[0]), _NormBase) or isinstance(module, fx.GraphModule)


def _held(module: nn.Module) -> dict[str, torch.Tensor]:
    held = dict((*module.named_parameters(), *module.named_buffers()))
    return {name: held[name] for name in module.state_dict() if name in held}
