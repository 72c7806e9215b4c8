"""Small looks at values of the reference that tests and tools share."""

from __future__ import annotations

from typing import Any


def tensor_leaves(value: Any) -> list[Any]:
    """Flatten nested outputs into their tensors, in order."""
    import torch
    from torch.utils import _pytree as pytree

    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
