"""Weights in the order in which oneDNN multiplies by them, laid out once when a model is loaded instead of at every call.

The sums are the same, added up in another order: vectors differ in the seventh digit. What it saves is in docs/results/knowledge.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

AGREES = 1e-4
"""Largest difference, over the largest value, between a layer before and after: rounding stays far below it."""


def pack(model: Any) -> int:
    """Lay out the weights of every linear float32 layer that torch's oneDNN can do so for, and that answers alike; return how many."""
    import torch

    try:
        kernels = torch.ops.mkldnn
        reorder, multiply = kernels._reorder_linear_weight, kernels._linear_pointwise
    except AttributeError:
        # a torch built without oneDNN: the layers stay as they are, and only take longer
        return 0
    layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.Linear) and layer.weight.dtype is torch.float32]
    return sum(_pack_one(layer, reorder, multiply) for layer in layers)


def _pack_one(layer: Any, reorder: Callable[..., Any], multiply: Callable[..., Any]) -> bool:
    import torch

    with torch.inference_mode():
        probe = torch.linspace(-1.0, 1.0, 3 * layer.in_features).reshape(3, layer.in_features)
        expected = layer(probe)
        try:
            weight = reorder(layer.weight.detach())
            found = multiply(probe, weight, layer.bias, "none", [], "")
        except (RuntimeError, NotImplementedError):
            return False
        if not bool((found - expected).abs().max() <= AGREES * expected.abs().max()):
            return False

    def forward(x: Any) -> Any:
        return multiply(x, weight, layer.bias, "none", [], "")

    layer.forward = forward
    return True
