"""Operators of torch that choose their parts by the device, which is not there while host code is followed: taken as one whole each.

Attention is one of several fused kernels on a GPU and a chain of operators elsewhere; recurrent layers start cuDNN. A plan holds the call
as it was made, and the process that runs it chooses as the candidate's own does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

_FUSED_HEAD = 256
"""Fused attention takes heads up to this size, in multiples of 8 (PyTorch 2.11, `sdp_utils_cpp.h`); others go by operators."""


class Listener(Protocol):
    """Who is told of such calls."""

    def composed(self, operator: Any, args: Sequence[Any], kwargs: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Hear of a call as a whole, of what `make` makes without contents; give that."""
        ...


def install(listener: Listener) -> None:
    """Have such calls of this process told to `listener`."""
    import torch
    from torch.nn import functional

    aten = torch.ops.aten
    # names that torch's own modules look up at each call, and the operators themselves
    attention = aten.scaled_dot_product_attention.default
    for module, name in ((functional, "scaled_dot_product_attention"), (aten.scaled_dot_product_attention, "default")):
        setattr(module, name, functools.partial(_attention, listener, getattr(module, name), attention))
    for name, packet in (("lstm", aten.lstm), ("gru", aten.gru)):
        operator = packet.input
        for module, attribute in ((torch, name), (torch._VF, name), (packet, "input")):
            setattr(module, attribute, functools.partial(_recurrent, listener, getattr(module, attribute), operator))


def _attention(listener: Listener, original: Callable[..., Any], operator: Any, *args: Any, **kwargs: Any) -> Any:
    import torch

    def make() -> torch.Tensor:
        made: torch.Tensor = original(*args, **kwargs)
        if not _is_fused(*args[:3]):
            return made
        return torch.empty_like(args[0]) if _lies_as_queries(args, kwargs) else made.transpose(1, 2).contiguous().transpose(1, 2)

    plain = len(args) >= 3 and all(isinstance(one, torch.Tensor) for one in args[:3])
    return listener.composed(operator, args, kwargs, make) if plain else original(*args, **kwargs)


def _is_fused(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a GPU has a fused kernel for it."""
    del key
    head = query.shape[-1]
    return query.device.type == "cuda" and query.dim() == 4 and head == value.shape[-1] and head <= _FUSED_HEAD and head % 8 == 0


def _lies_as_queries(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the fused kernel lays its result as the queries lie; others lay all heads of one position together.

    That of halves without a mask does: PyTorch's flash attention makes its result like the queries (seen of queries in order, an H200,
    torch 2.11). Where a device lays it otherwise the plan does not stand for the candidate, which is said.
    """
    import torch

    mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
    return args[0].dtype in (torch.float16, torch.bfloat16) and mask is None


def _recurrent(listener: Listener, original: Callable[..., Any], operator: Any, *args: Any) -> Any:
    import torch

    data, state, weights, _, layers, _, _, both, *rest = args
    if not isinstance(data, torch.Tensor) or data.dim() != 3 or not rest:
        # packed sequences have a call of their own
        return original(*args)
    batch_first = bool(rest[0])
    first = state[0] if isinstance(state, list | tuple) else state

    def make() -> Any:
        steps, batch = (data.shape[1], data.shape[0]) if batch_first else (data.shape[0], data.shape[1])
        out = data.new_empty((steps, batch, int(first.shape[-1]) * (2 if both else 1)))
        hidden = [data.new_empty((layers * (2 if both else 1), batch, int(first.shape[-1]))) for _ in range(2 if first is not state else 1)]
        return (out.transpose(0, 1) if batch_first else out, *hidden)

    projected = isinstance(state, list | tuple) and state[0].shape[-1] != state[1].shape[-1]
    del weights
    return original(*args) if projected else listener.composed(operator, args, {}, make)
