"""Tracing of references that take derivatives: torch.export follows neither `torch.func.grad` nor `torch.autograd.grad`.

PyTorch's tracer of operators does, as each step of theirs is one in the end. What it traced stands in for the forward that is exported.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, functionalize
from torch.fx.experimental.proxy_tensor import make_fx


def with_derivatives_written_out(module: nn.Module, arguments: tuple[Any, ...]) -> nn.Module:
    """Give `module` with what it does for these arguments as its forward, operator by operator; its parameters keep their names."""
    places = [place for place, value in enumerate(arguments) if isinstance(value, torch.Tensor)]

    def call(state: dict[str, torch.Tensor], *tensors: torch.Tensor) -> Any:
        given = list(arguments)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        return functional_call(module, state, tuple(given))

    given = _state(module), *(arguments[place] for place in places)
    traced = make_fx(call, tracing_mode="fake")(*given)
    # what a derivative's rule writes in place becomes a value of its own
    traced = make_fx(functionalize(traced), tracing_mode="fake")(*given)
    for node in traced.graph.nodes:
        node.target = _aten(node.target)
    traced.recompile()
    made = copy.copy(module)
    # an attribute of this one module, found before its class's
    made.forward = lambda *given: traced(_state(made), *(given[place] for place in places))
    return made


def _state(module: nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _aten(target: Any) -> Any:
    """Give the operator by which an elementwise one of PyTorch's own language of rules is known."""
    if not str(target).startswith("prims."):
        return target
    packet = getattr(torch.ops.aten, str(target).split(".")[1], None)
    return getattr(packet, "Tensor" if len(target._schema.arguments) == 2 else "default", target)
