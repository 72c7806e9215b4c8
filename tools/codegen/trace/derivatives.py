"""Tracing of references that take derivatives: torch.export follows neither `torch.func.grad` nor `torch.autograd.grad`.

PyTorch's tracer of operators does, as each step of theirs is one in the end. What it traced stands in for the forward that is exported.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

CDIST_MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}
"""How `torch.cdist` is told to compute, by what its operator calls that."""


def with_derivatives_written_out(module: nn.Module, arguments: tuple[Any, ...]) -> nn.Module:
    """Give `module` with what it does for these arguments as its forward, operator by operator; its parameters keep their names."""
    places = [place for place, value in enumerate(arguments) if isinstance(value, torch.Tensor)]

    def call(state: dict[str, torch.Tensor], *tensors: torch.Tensor) -> Any:
        given = list(arguments)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        return functional_call(module, state, tuple(given))

    given = _state(module), *(arguments[place] for place in places)
    try:
        traced = _alike_at_all_sizes(call)(*given)
    except RuntimeError:
        # distances have second derivatives by a product alone
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


class _WholeDistances(TorchFunctionMode):
    """Keeps `torch.cdist` one operator, with one for its gradient, at all sizes: of more than 25 rows PyTorch makes a product."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int | None] = []

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Run what was called; distances by differences."""
        if func is not torch.cdist:
            return func(*args, **(kwargs or {}))
        given = dict(zip(("x1", "x2", "p", "compute_mode"), args, strict=False)) | (kwargs or {})
        self.asked.append(CDIST_MODES[given.get("compute_mode", next(iter(CDIST_MODES)))])
        return func(**{**given, "compute_mode": list(CDIST_MODES)[-1]})


def _alike_at_all_sizes(call: Callable[..., Any]) -> Callable[..., torch.fx.GraphModule]:
    """Trace a function by operators that are the same at all sizes; distances are computed as was asked."""

    def trace(*given: Any) -> torch.fx.GraphModule:
        with _WholeDistances() as whole:
            traced = make_fx(call, tracing_mode="fake")(*given)
        made = [node for node in traced.graph.nodes if node.target is torch.ops.aten._cdist_forward.default]
        if len(made) == len(whole.asked):
            for node, asked in zip(made, whole.asked, strict=True):
                node.args = (*node.args[:3], asked)
        return traced

    return trace


def _state(module: nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _aten(target: Any) -> Any:
    """Give the operator by which an elementwise one of PyTorch's own language of rules is known."""
    if not str(target).startswith("prims."):
        return target
    packet = getattr(torch.ops.aten, str(target).split(".")[1], None)
    return getattr(packet, "Tensor" if len(target._schema.arguments) == 2 else "default", target)
