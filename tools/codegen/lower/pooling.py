"""Lower pooling: each output element looks at a window of the input; pooling to one element is a reduction."""

from __future__ import annotations

from typing import Any, NamedTuple

from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.geometry import PoolKind, Window
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.operators.families import ADAPTIVE_POOLINGS
from tools.codegen.ir.sizes import is_one
from tools.codegen.lower.region.lowering import Lowering, Rule
from tools.codegen.lower.region.operand import RowOperand


class Shape(NamedTuple):
    """How a window lies, by spatial dimension."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


def _pool(kind: PoolKind, rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        names = _MAX_NAMES if kind is PoolKind.MAX else _MEAN_NAMES
        given = {**dict(zip(names, node.args[1:], strict=False)), **node.kwargs}
        size = _each(given["kernel_size"], rank)
        stride = _each(given.get("stride") or size, rank)
        padding, dilation = _each(given.get("padding", 0), rank), _each(given.get("dilation", 1), rank)
        ceil, divisor = bool(given.get("ceil_mode")), given.get("divisor_override") or 0
        if ceil and kind is PoolKind.MEAN:
            raise LoweringError(f"{node.target} of means with ceil_mode is not generated")
        if not isinstance(divisor, int):
            raise LoweringError(f"{node.target} with a divisor that varies with the sizes is not generated")
        if not divisor and _is_whole(low, node, size, padding, dilation):
            _adaptive(kind, rank)(low, node)
            return
        _define(low, node, kind, Shape(size, stride, padding, dilation), (bool(given.get("count_include_pad", True)), ceil, divisor))

    return rule


def _is_whole(low: Lowering, node: Node, size: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]) -> bool:
    """Whether one window takes in the whole input: then it is a reduction."""
    shape = low.graph.meta(node.args[0]).shape[-len(size) :]
    fits = all(set(sizes) == {extent} for sizes, extent in zip(shape, size, strict=True))
    return fits and not any(padding) and set(dilation) == {1} and any(extent > 1 for extent in size)


def _define(
    low: Lowering, node: Node, kind: PoolKind, shape: Shape, counting: tuple[bool, bool, int], windows: tuple[int, ...] = ()
) -> None:
    if low.is_claimed:
        raise LoweringError("a pooling shares its kernel with pointwise operators only")
    out, rank = node.result, len(shape.size)
    if out.dtype not in ("float32", "float16", "bfloat16"):
        raise LoweringError(f"{node.target} of {out.dtype} is not generated")
    source = low.value(node.args[0])
    if any(len(dim) != 1 for dim in source.dims[-rank:]):
        if low.flow.is_internal(node.args[0]) or any(is_one(sizes) for sizes in low.graph.meta(node.args[0]).shape[-rank:]):
            raise LoweringError(f"{node.target} of one element along a dimension, or of a view made in the same region, is not generated")
        source = low.read_as_it_is(node.args[0])
    spatial = low.b.atoms.dims(out.shape[-rank:])
    if not all(spatial):
        raise LoweringError(f"{node.target} to a size of one is not generated")
    dims = low.b.atoms.resolve((*source.dims[:-rank], *spatial))
    value = low.b.leaf("window", COMPUTE[out.dtype], (atom for dim in dims for atom in dim))
    low.b.label(value, "acc")
    inside = tuple(dim[0] for dim in source.dims[-rank:])
    places = tuple(dim[0] for dim in spatial)
    seen = low.b.compute(source.value, COMPUTE[out.dtype])
    count_padding, ceil, divisor = counting
    position = _position(low, node, value) if len(node.outputs) > 1 and _is_asked(low, Ref(node.name, 1)) else None
    low.window = Window(
        **shape._asdict(), expr=value.id, source=seen.id, inside=inside, kind=kind,
        count_padding=count_padding, ceil=ceil, divisor=divisor, spatial=places, windows=windows,
        position=-1 if position is None else position.id,
    )  # fmt: skip
    low.define(node, value, dims)
    if position is not None:
        low.define(node, position, dims, index=1)


def _is_asked(low: Lowering, ref: Ref) -> bool:
    """Whether anybody reads a value."""
    return ref in low.graph.returned or any(ref in user.refs for user in low.graph.users.get(ref.name, ()))


def _position(low: Lowering, node: Node, value: Value) -> Value:
    """Make the leaf that says where in its plane a maximum is."""
    position = low.b.leaf("position", "int64", low.b.exprs[value.id].atoms)
    low.b.label(position, f"{node.name}_place")
    return position


def overlap(node: Node) -> int:
    """Count how often a pooling looks at an element, at most: what is made before it in the same kernel is made as often."""
    size, stride = node.args[1], node.args[2] if len(node.args) > 2 else None
    if node.op in ADAPTIVE_POOLINGS or not isinstance(size, int | list | tuple):
        return 1
    sizes = [size] if isinstance(size, int) else list(size)
    steps = sizes if not stride else [stride] if isinstance(stride, int) else list(stride)
    count = 1
    for place in range(next(int(letter) for letter in node.op if letter.isdigit())):
        one, two = sizes[place % len(sizes)], steps[place % len(steps)]
        if not isinstance(one, int) or not isinstance(two, int):
            return 1
        count *= -(-one // two)
    return count


def _adaptive(kind: PoolKind, rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        if not all(is_one(sizes) for sizes in node.result.shape[-rank:]):
            size, counts = _cut(low, node, rank)
            _define(low, node, kind, Shape(size, size, (0,) * rank, (1,) * rank), (True, False, 0), counts)
            return
        source = low.value(node.args[0])
        rows = RowOperand(low, node, source, list(range(len(source.dims) - rank, len(source.dims))))
        low.define(node, rows.mean() if kind is PoolKind.MEAN else rows.reduce(Fold.MAX), rows.kept(keepdim=True))

    return rule


def _cut(low: Lowering, node: Node, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements of a usual window of an adaptive pooling at the sizes as written, and the number of windows along each dimension."""
    shape, results = low.graph.meta(node.args[0]).shape[-rank:], node.result.shape[-rank:]
    if any(len(set(sizes)) > 1 for sizes in results):
        raise LoweringError(f"{node.target} to a size that varies with the problem's sizes is not generated")
    counts = tuple(sizes[0] for sizes in results)
    return tuple(-(-sizes[0] // count) for sizes, count in zip(shape, counts, strict=True)), counts


def _each(value: Any, rank: int) -> tuple[int, ...]:
    """Repeat one number for every dimension."""
    values = [value] * rank if isinstance(value, int) else list(value)
    values = values * rank if len(values) == 1 else values
    if not all(isinstance(each, int) for each in values):
        raise LoweringError("a window whose size varies with the problem's sizes is not generated")
    return tuple(values)


_MAX_NAMES = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
_MEAN_NAMES = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")

POOLING_RULES: dict[str, Rule] = {
    **{f"max_pool{rank}d{more}": _pool(PoolKind.MAX, rank) for rank in (1, 2, 3) for more in ("", "_with_indices")},
    **{f"avg_pool{rank}d": _pool(PoolKind.MEAN, rank) for rank in (1, 2, 3)},
    **{f"adaptive_avg_pool{rank}d": _adaptive(PoolKind.MEAN, rank) for rank in (1, 2, 3)},
    **{f"adaptive_max_pool{rank}d": _adaptive(PoolKind.MAX, rank) for rank in (1, 2, 3)},
}  # fmt: skip
"""Pooling by operator name."""
