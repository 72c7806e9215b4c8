"""Recurrent layers under fake tensors, as the one operator that the graph has: of their steps nothing is traced, only shapes are told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tools.codegen.ir.operators.families import RECURRENT


@contextlib.contextmanager
def recurrent_as_a_whole() -> Iterator[None]:
    """Have LSTM, GRU and RNN on padded sequences make results without contents: tracing thousands of steps takes minutes."""
    import torch
    from torch._C import DispatchKey
    from torch._decomp import decomposition_table

    changed: list[tuple[Any, dict[Any, Any], Any]] = []
    for name in sorted(RECURRENT):
        operator: Any = getattr(torch.ops.aten, name).input
        changed.append((operator, dict(operator.py_kernels), decomposition_table.get(operator)))
        for key in (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd):
            operator.py_kernels[key] = _made
        decomposition_table[operator] = _made
        operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for operator, kernels, decomposition in changed:
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()
            if decomposition is None:
                del decomposition_table[operator]
            else:
                decomposition_table[operator] = decomposition


def _made(
    given: Any, first: Any, weights: Any, biased: bool, layers: int, dropout: float, train: bool, both: bool, batch_first: bool
) -> Any:
    """Make what such a call makes, without contents; what is wrong with its operands is told as PyTorch does, by multiplying them."""
    states = first if isinstance(first, tuple | list) else (first,)
    steps, batch = given.shape[:2] if not batch_first else (given.shape[1], given.shape[0])
    directions, projected = (2 if both else 1), states[0].shape[-1]
    given.reshape(-1, given.shape[-1]).matmul(weights[0].t())
    out = given.new_empty((steps, batch, projected * directions))
    kept = [given.new_empty((layers * directions, batch, state.shape[-1])) for state in states]
    return (out.transpose(0, 1) if batch_first else out, *kept)
