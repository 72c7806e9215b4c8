"""Writes what tells calls of a module apart."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch


def signature(tree: Any, *, sizes: bool = True) -> str:
    """Write shapes, dtypes, strides, devices, and other arguments by their repr or class.

    Without `sizes` of shape and strides only the number of dimensions, and whether a tensor lies in order: of kinds that one kernel may
    serve.
    """
    inner = partial(signature, sizes=sizes)
    if isinstance(tree, torch.Tensor):
        shape, lies = (tuple(tree.shape), tree.stride()) if sizes else (tree.dim(), tree.is_contiguous())
        return f"{type(tree).__name__} {shape} {tree.dtype} {lies} {tree.device}"
    if isinstance(tree, tuple | list):
        return f"[{', '.join(map(inner, tree))}]"
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{key}: {inner(value)}' for key, value in tree.items())}}}"
    return repr(tree) if isinstance(tree, bool | int | float | str | None) else type(tree).__name__
