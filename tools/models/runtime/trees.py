"""Calls as trees of tuples, lists and dictionaries: their tensors in order, and what is left without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

TENSOR = "<tensor>"
"""Stands for a tensor."""


def leaves(tree: Any) -> list[torch.Tensor]:
    """List the tensors of a tree in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    found: list[torch.Tensor] = []
    if isinstance(tree, (tuple, list)):
        for item in tree:
            found += leaves(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            found += leaves(item)
    return found


def is_like(tree: Any, shape: Any) -> bool:
    """Whether a tree has a structure: tensors where that has TENSOR, and equal values everywhere else."""
    if isinstance(tree, torch.Tensor):
        return isinstance(shape, str) and shape == TENSOR
    if isinstance(tree, (tuple, list)):
        return isinstance(shape, list) and len(tree) == len(shape) and all(is_like(a, b) for a, b in zip(tree, shape, strict=True))
    if isinstance(tree, dict):
        return isinstance(shape, dict) and list(tree) == list(shape) and all(is_like(tree[key], shape[key]) for key in shape)
    return type(tree) is type(shape) and tree == shape


def filled(shape: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """Put tensors into a structure, its lists as tuples."""
    return _filled(shape, iter(tensors))


def _filled(shape: Any, tensors: Iterator[torch.Tensor]) -> Any:
    if isinstance(shape, str) and shape == TENSOR:
        return next(tensors)
    if isinstance(shape, list):
        return tuple([_filled(item, tensors) for item in shape])
    if isinstance(shape, dict):
        return {key: _filled(item, tensors) for key, item in shape.items()}
    return shape
