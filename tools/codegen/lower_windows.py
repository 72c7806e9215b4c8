"""Lower pooling: each output element looks at a window of the input; pooling to one element is a reduction."""

from __future__ import annotations

from typing import Any, NamedTuple

from tools.codegen.expressions import COMPUTE, Expr, LoweringError, Value
from tools.codegen.graph import Node
from tools.codegen.lowering import Lowering, Window
from tools.codegen.row_operand import RowOperand, Rule
from tools.codegen.sizes import is_one


class Shape(NamedTuple):
    """How a window lies, by spatial dimension."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


def _pool(kind: str, rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        names = _MAX_NAMES if kind == "max" else _MEAN_NAMES
        given = {**dict(zip(names, node.args[1:], strict=False)), **node.kwargs}
        size = _each(given["kernel_size"], rank)
        stride = _each(given.get("stride") or size, rank)
        padding, dilation = _each(given.get("padding", 0), rank), _each(given.get("dilation", 1), rank)
        if given.get("ceil_mode") or given.get("divisor_override") is not None:
            raise LoweringError(f"{node.target} with ceil_mode or divisor_override is not generated")
        _define(low, node, kind, Shape(size, stride, padding, dilation), bool(given.get("count_include_pad", True)))

    return rule


def _define(low: Lowering, node: Node, kind: str, shape: Shape, count_padding: bool) -> None:
    if low.window is not None or low.contraction is not None:
        raise LoweringError("two windows do not share a kernel")
    out = node.outputs[0]
    if not low.graph.meta(node.args[0]).contiguous or out.dtype not in ("float32", "float16", "bfloat16"):
        raise LoweringError(f"{node.target} of this tensor is not generated")
    source = low.read_as_it_is(node.args[0])
    place = low.b.exprs[source.value.id].extra
    rank = len(shape.size)
    spatial = low.b.atoms.dims(out.shape[-rank:])
    if not all(spatial) or any(is_one(sizes) for sizes in low.b.loads[place].meta.shape[-rank:]):
        raise LoweringError(f"{node.target} to a size of one is not generated")
    dims = (*source.dims[:-rank], *spatial)
    low.b.exprs.append(Expr("window", (), COMPUTE[out.dtype], frozenset(atom for dim in dims for atom in dim)))
    value = Value(low.b, len(low.b.exprs) - 1)
    low.b.label(value, "acc")
    low.window = Window(
        place, kind, shape.size, shape.stride, shape.padding, shape.dilation, count_padding, tuple(dim[0] for dim in spatial), value.id
    )
    low.define(node, value, dims)


def _adaptive(kind: str, rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        if not all(is_one(sizes) for sizes in node.outputs[0].shape[-rank:]):
            raise LoweringError(f"{node.target} to more than one element is not generated")
        source = low.value(node.args[0])
        rows = RowOperand(low, node, source, list(range(len(source.dims) - rank, len(source.dims))))
        low.define(node, rows.mean() if kind == "mean" else rows.reduce("max"), rows.kept(keepdim=True))

    return rule


def _each(value: Any, rank: int) -> tuple[int, ...]:
    """Repeat one number for every dimension."""
    values = [value] * rank if isinstance(value, int) else list(value)
    values = values * rank if len(values) == 1 else values
    if not all(isinstance(each, int) for each in values):
        raise LoweringError("a window whose size varies with the problem's sizes is not generated")
    return tuple(values)


_MAX_NAMES = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
_MEAN_NAMES = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")

WINDOWS: dict[str, Rule] = {
    **{f"max_pool{rank}d": _pool("max", rank) for rank in (1, 2, 3)},
    **{f"avg_pool{rank}d": _pool("mean", rank) for rank in (1, 2, 3)},
    **{f"adaptive_avg_pool{rank}d": _adaptive("mean", rank) for rank in (1, 2, 3)},
}  # fmt: skip
"""Pooling by operator name."""
