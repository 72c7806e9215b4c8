"""Calls as trees: the tensors of one in order, and what is left where each is replaced by a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tools.models.records import TENSOR

PLAIN = (bool, int, float, str, type(None))
"""What may stand in a call beside tensors; each is part of what a kernel is made for."""


class UnsupportedCallError(Exception):
    """A call or result holds what no operator can take or give; the text says what."""


def tensors(tree: Any) -> Iterator[torch.Tensor]:
    """List the tensors of tuples, lists and dictionaries in order."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, tuple | list):
        for item in tree:
            yield from tensors(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from tensors(item)


def structure(tree: Any) -> Any:
    """Write a tree with TENSOR for each tensor, as JSON has it; anything but plain values beside them raises UnsupportedCallError."""
    if isinstance(tree, torch.Tensor):
        return TENSOR
    if type(tree) in PLAIN:
        return tree
    if type(tree) in (tuple, list):
        return [structure(item) for item in tree]
    if type(tree) is dict and all(type(key) is str for key in tree):
        return {key: structure(item) for key, item in tree.items()}
    name = type(tree).__name__
    raise UnsupportedCallError(f"{name}, which is state (use_cache=False does without)" if name.endswith("Cache") else name)


def filled(shape: Any, found: Iterator[torch.Tensor]) -> Any:
    """Put tensors back into a structure, lists as tuples."""
    if shape == TENSOR:
        return next(found)
    if isinstance(shape, list):
        return tuple(filled(item, found) for item in shape)
    if isinstance(shape, dict):
        return {key: filled(item, found) for key, item in shape.items()}
    return shape
