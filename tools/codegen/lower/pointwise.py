"""Lower the pointwise operators of the table, and casts."""

from __future__ import annotations

from functools import cache
from typing import Any

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import COMPUTE, LARGEST, TRITON
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.narrow import COMPARISONS, range_of
from tools.codegen.ir.narrow import DTYPES as NARROW
from tools.codegen.ir.operators.clamped import is_clamped
from tools.codegen.ir.operators.families import CASTS
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.lower.region.lowering import Lowering, Rule

HALVES = frozenset({"float16", "bfloat16"})
SHORT = frozenset({"int8", "uint8", "int16"})
"""Dtypes that are computed in a longer one of whole numbers."""
MASK = {"where": 0, "masked_fill": 1}
"""Which argument is a mask and keeps its dtype."""


def lower_pointwise(low: Lowering, node: Node) -> None:
    """Lower one operator of the table, broadcasting its tensors against each other."""
    b = low.b
    operands = low.operands(_tensors(node))
    if node.op == "prelu":
        operands[1] = _channel(operands[1], len(operands[0].dims))
    operands, dims = low.aligned(operands)
    if not operands:
        raise LoweringError(f"{node.target} reads no tensor")
    out = node.outputs[0].dtype
    values = iter(operands)
    given = node.args[:1] if node.op == "type_as" else node.args
    args = [next(values).value if isinstance(arg, Ref) else arg for arg in given]
    kwargs = {key: next(values).value if isinstance(arg, Ref) else arg for key, arg in node.kwargs.items()}
    if node.op in CASTS:
        _refuse_overflow(low.graph, node.args[0], out)
        low.define(node, b.cast(args[0], out), dims)
        return
    if node.op in COMPARISONS:
        dtypes = [low.graph.meta(arg).dtype for arg in given if isinstance(arg, Ref)]
        args = [arg if isinstance(arg, Value) or len(dtypes) != 1 else _as_held(arg, dtypes[0]) for arg in args]
    if node.op in LOGIC:
        low.define(node, _wrapped(b, LOGIC[node.op](b, *args), out), dims)
        return
    compute = COMPUTE[out]
    args = [_prepare(b, arg, compute, keep=place == MASK.get(node.op, -1)) for place, arg in enumerate(args)]
    kwargs = {key: _prepare(b, arg, compute, keep=False) for key, arg in kwargs.items()}
    low.define(node, _wrapped(b, b.compute(ARITHMETIC[node.op](b, *args, **kwargs), compute), out), dims)


def _wrapped(b: Builder, value: Value, dtype: str) -> Value:
    """Leave of a whole number what its short dtype holds: what is made of it in the same kernel is made of that."""
    if dtype not in SHORT:
        return value
    found, (least, most) = range_of(b, value.id), NARROW[dtype]
    return value if found is not None and least <= found[0] and found[1] <= most else b.cast(value, dtype)


def _as_held(number: Any, dtype: str) -> Any:
    """Convert a number as PyTorch does before it compares a tensor with it: to the tensor's dtype, where both are of one kind."""
    import torch

    if isinstance(number, bool) or not isinstance(number, int | float):
        return number
    if dtype in HALVES or (isinstance(number, int) and dtype in NARROW):
        return torch.tensor(number).to(getattr(torch, dtype)).item()
    return number


def _refuse_overflow(graph: OperatorGraph, source: Ref, dtype: str) -> None:
    """Raise LoweringError for a float8 of which PyTorch makes something else than a device, which saturates, of what is out of range."""
    if dtype in TRITON and not _saturates(dtype) and not is_clamped(graph, source, LARGEST[dtype]):
        raise LoweringError(f"casts to {dtype} are not generated: a device saturates, and this PyTorch does not")


@cache
def _saturates(dtype: str) -> bool:
    import torch

    large = torch.tensor(1e6).to(getattr(torch, dtype)).float()
    return bool(large.isfinite())


def _prepare(b: Builder, arg: Any, compute: str, keep: bool) -> Any:
    return b.compute(arg, compute) if isinstance(arg, Value) and not keep else arg


def _tensors(node: Node) -> list[Ref]:
    found = [arg for arg in (*node.args, *node.kwargs.values()) if isinstance(arg, Ref)]
    nested = [arg for arg in (*node.args, *node.kwargs.values()) if isinstance(arg, tuple | list) and any(isinstance(a, Ref) for a in arg)]
    if nested:
        raise LoweringError(f"{node.target} takes a list of tensors")
    return found[:1] if node.op == "type_as" else found


def _channel(slope: Lowered, rank: int) -> Lowered:
    """Align a per-channel tensor with dimension 1."""
    if len(slope.dims) == 1 and slope.dims[0] and rank >= 2:
        return Lowered(slope.value, (slope.dims[0], *((),) * (rank - 2)))
    return slope


POINTWISE_RULES: dict[str, Rule] = dict.fromkeys((*ARITHMETIC, *LOGIC, *CASTS), lower_pointwise)
"""Rules by operator name."""
