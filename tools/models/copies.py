"""Copies of a model: one that shares its tensors, one that can be run without a trace, one in a wider format; and copies of calls."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from tools.complex_pairs import convert_module, converted
from tools.models.calls import PLAIN


def twin(model: nn.Module) -> nn.Module:
    """Copy a model's modules; parameters and buffers are the same tensors."""
    return copy.deepcopy(model, {id(value): value for value in (*model.parameters(), *model.buffers())})


def fresh(model: nn.Module) -> nn.Module:
    """Copy all that a run may change, which is everything but the parameters: what a model keeps from call to call stays as it was."""
    kept = {id(value): value for value in model.parameters()}
    return copy.deepcopy(model, kept | {id(value): _cloned(value) for value in model.buffers()})


def widened(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Copy a model in `dtype`."""
    return convert_module(copy.deepcopy(model, {id(value): _cloned(value) for value in (*model.parameters(), *model.buffers())}), dtype)


def copied(tree: Any, dtype: torch.dtype | None) -> Any:
    """Copy the tensors of a call, floats to `dtype` where one is named, and objects such as a cache as they are."""
    if isinstance(tree, torch.Tensor):
        made: torch.Tensor = tree if dtype is None else converted(tree, dtype)
        return made.clone() if made is tree else made
    if type(tree) in (tuple, list):
        return type(tree)(copied(item, dtype) for item in tree)
    if type(tree) is dict:
        return {key: copied(value, dtype) for key, value in tree.items()}
    return copy.deepcopy(tree)


def holds_objects(tree: Any) -> bool:
    """Whether a call has something that a run may change in more than its contents: a cache that grows, say."""
    if type(tree) in (tuple, list):
        return any(map(holds_objects, tree))
    if type(tree) is dict:
        return any(map(holds_objects, tree.values()))
    return not isinstance(tree, torch.Tensor) and type(tree) not in PLAIN


def _cloned(value: torch.Tensor) -> torch.Tensor:
    """Copy a tensor, of a subclass too, which `copy.deepcopy` does not always do."""
    own = value.detach().clone()
    return nn.Parameter(own, requires_grad=value.requires_grad) if isinstance(value, nn.Parameter) else own
