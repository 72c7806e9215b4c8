"""Lower convolutions: pointwise ones as products, depthwise ones as windows, dense ones and their transposes as gathered products."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tools.codegen.expressions import COMPUTE, Expr, LoweringError, Value
from tools.codegen.graph import Node, Ref
from tools.codegen.kernel import Contraction, Lowered
from tools.codegen.layouts import LaidOut
from tools.codegen.lowering import Lowering
from tools.codegen.row_operand import argument
from tools.codegen.sizes import Varying, is_one
from tools.codegen.sliding import Convolution, Depthwise

Rule = Callable[[Lowering, Node], None]


def _convolution(rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        stride, padding, dilation = (_each(argument(node, place, name, usual), rank) for place, name, usual in _NUMBERS)
        groups = argument(node, 6, "groups", 1)
        if stride is None or padding is None or dilation is None:
            raise LoweringError(f"{node.target} with padding by name, or numbers that vary with the sizes, is not generated")
        if low.is_claimed:
            raise LoweringError("a convolution shares its kernel with pointwise operators only")
        weight = low.graph.meta(node.args[1])
        unit = all(is_one(sizes) for sizes in weight.shape[2:]) and set(stride) == {1} and set(padding) == {0}
        single = groups != 1 and is_one(weight.shape[1])
        if isinstance(node, LaidOut) and single:
            raise LoweringError(f"{node.target} of single channels that lie last is the library's; take its memory format back first")
        if rank == 2 and single and _spread(groups, low) == weight.shape[0]:
            _depthwise(low, node, stride, padding, dilation)
        elif single:
            raise LoweringError(
                f"{node.target} with one input channel a group is left to the library unless it is depthwise in two dimensions"
            )
        elif unit and groups == 1 and not isinstance(node, LaidOut):
            _pointwise(low, node)
        else:
            _dense(low, node, _Numbers(stride, padding, dilation, (0,) * rank), _number_of(groups, node), transposed=False)

    return rule


def _transposed(rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        names = (("stride", 3, 1), ("padding", 4, 0), ("output_padding", 5, 0), ("dilation", 7, 1))
        stride, padding, extra, dilation = (_each(argument(node, place, name, usual), rank) for name, place, usual in names)
        if stride is None or padding is None or extra is None or dilation is None:
            raise LoweringError(f"{node.target} with numbers that vary with the sizes is not generated")
        if low.is_claimed:
            raise LoweringError("a convolution shares its kernel with pointwise operators only")
        groups = argument(node, 6, "groups", 1)
        if groups != 1 and _spread(groups, low) == low.graph.meta(node.args[1]).shape[0]:
            raise LoweringError(f"{node.target} with one input channel a group is left to the library")
        _dense(low, node, _Numbers(stride, padding, dilation, extra), _number_of(groups, node), transposed=True)

    return rule


class _Numbers(NamedTuple):
    """How a convolution's kernel moves, by spatial dimension."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    extra: tuple[int, ...]


def _number_of(groups: object, node: Node) -> int:
    """Read a number of groups that is the same at all sizes."""
    if not isinstance(groups, int):
        raise LoweringError(f"{node.target} in a number of groups that varies with the sizes is not generated")
    return groups


def _dense(low: Lowering, node: Node, numbers: _Numbers, groups: int, transposed: bool) -> None:
    """Every channel of the input, or of a group of it, into every channel of the result, or of the same group of it."""
    last = isinstance(node, LaidOut)
    shape, weight_shape = node.outputs[0].shape, low.graph.meta(node.args[1]).shape
    if any(len(set(sizes)) > 1 for sizes in weight_shape[2:]):
        raise LoweringError(f"{node.target} whose kernel's size varies with the problem's sizes is not generated")
    spatial = low.b.atoms.dims(shape[1:-1] if last else shape[2:])
    if len(shape) != 2 + len(numbers.stride) or not all(spatial):
        raise LoweringError(f"{node.target} to one element along a dimension, or without a batch, is not generated")
    source, weight = low.read_as_it_is(node.args[0]), low.read_as_it_is(node.args[1])
    # a transposed convolution's weights have the result's channels of one group
    (channel,) = low.b.atoms.dims((shape[-1 if last else 1],)) if transposed and groups > 1 else (weight.dims[1 if transposed else 0],)
    if not channel:
        raise LoweringError(f"{node.target} to one channel is not generated")
    dims = low.b.atoms.resolve((source.dims[0], channel, *spatial))
    value = _leaf(low, node, "convolution", tuple(atom for dim in dims for atom in dim))
    places = [low.b.exprs[read.value.id].extra for read in (source, weight)]
    low.convolution = Convolution(
        size=tuple(sizes[0] for sizes in weight_shape[2:]), **numbers._asdict(), expr=value.id, source=places[0], weight=places[1],
        dims=dims, transposed=transposed, groups=groups,
        channels=tuple(sizes // groups for sizes in weight_shape[0]) if transposed else weight_shape[1],
    )  # fmt: skip
    if not last:
        _finish(low, node, value, dims)
        return
    bias = argument(node, 2, "bias")
    if isinstance(bias, Ref):
        operand = low.value(bias)
        low.b.atoms.unify(channel, operand.dims[0])
        value = value + low.b.compute(operand.value, value.dtype)
    low.define(node, value, low.b.atoms.resolve((source.dims[0], *spatial, channel)))


def _pointwise(low: Lowering, node: Node) -> None:
    """A kernel of one element: the weights times the channels, at every position."""
    atoms = low.b.atoms
    source, weight = low.read_again(node.args[0]), low.read_again(node.args[1])
    if len(source.dims) != len(node.outputs[0].shape) or not source.dims[1] or not weight.dims[0]:
        raise LoweringError(f"{node.target} with one channel, or without a batch, is not generated")
    atoms.unify(weight.dims[1], source.dims[1])
    batch, rows = atoms.leaves(source.dims[0]), atoms.leaves(weight.dims[0])
    inner, cols = atoms.leaves(weight.dims[1]), atoms.leaves(atom for dim in source.dims[2:] for atom in dim)
    if not cols:
        raise LoweringError(f"{node.target} at a single position is not generated")
    value = _leaf(low, node, "product", (*batch, *rows, *cols))
    # the weights are the right operand: they lie along the sum, which is what tensor cores want of it
    low.contraction = Contraction(source, weight, batch, cols, rows, inner, value.id)
    _finish(low, node, value, (source.dims[0], weight.dims[0], *source.dims[2:]))


def _depthwise(low: Lowering, node: Node, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]) -> None:
    """Each channel by itself."""
    places = []
    for ref in (node.args[0], node.args[1]):
        read = low.read_again(ref)
        place = low.b.exprs[read.value.id].extra
        if low.b.loads[place].dims != read.dims or not low.graph.meta(ref).contiguous:
            raise LoweringError(f"{node.target} of a view is not generated")
        places.append((place, read))
    (source_place, source), (weight_place, weight) = places
    out = node.outputs[0]
    shape = low.b.loads[weight_place].meta.shape[2:]
    if any(len(set(sizes)) > 1 for sizes in shape):
        raise LoweringError(f"{node.target} whose kernel's size varies with the problem's sizes is not generated")
    size = tuple(sizes[0] for sizes in shape)
    spatial = low.b.atoms.dims(out.shape[2:])
    if len(source.dims) != 4 or not all(spatial) or not source.dims[1]:
        raise LoweringError(f"{node.target} to one row or column, or without a batch, is not generated")
    low.b.atoms.unify(source.dims[1], weight.dims[0])
    dims = low.b.atoms.resolve((*source.dims[:2], *spatial))
    value = _leaf(low, node, "depthwise", tuple(atom for dim in dims for atom in dim))
    low.depthwise = Depthwise(
        size=size, stride=stride, padding=padding, dilation=dilation, expr=value.id, source=source_place, weight=weight_place, dims=dims
    )
    _finish(low, node, value, dims)


def _leaf(low: Lowering, node: Node, op: str, atoms: tuple[int, ...]) -> Value:
    dtype = node.outputs[0].dtype
    if dtype not in ("float16", "bfloat16", "float32"):
        raise LoweringError(f"convolutions in {dtype} are not generated")
    low.b.exprs.append(Expr(op, (), COMPUTE[dtype], frozenset(atoms)))
    value = Value(low.b, len(low.b.exprs) - 1)
    low.b.label(value, "acc")
    return value


def _finish(low: Lowering, node: Node, value: Value, dims: tuple[tuple[int, ...], ...]) -> None:
    """Add the bias of each channel."""
    bias = argument(node, 2, "bias")
    if isinstance(bias, Ref):
        operand = low.value(bias)
        aligned = Lowered(operand.value, (operand.dims[0], *((),) * (len(dims) - 2)))
        low.b.atoms.broadcast(dims, aligned.dims)
        value = value + low.b.compute(aligned.value, value.dtype)
    low.define(node, value, dims)


def _spread(groups: object, low: Lowering) -> tuple[object, ...]:
    """Number of groups in every trace."""
    return groups.values if isinstance(groups, Varying) else (groups,) * low.graph.traces


def _each(value: object, rank: int) -> tuple[int, ...] | None:
    """Repeat one number for every dimension; None for what is not whole numbers."""
    values = [value] if isinstance(value, int) else list(value) if isinstance(value, list | tuple) else []
    values = values * rank if len(values) == 1 else values
    return tuple(values) if len(values) == rank and all(isinstance(each, int) for each in values) else None


_NUMBERS = ((3, "stride", 1), (4, "padding", 0), (5, "dilation", 1))

CONVOLUTIONS: dict[str, Rule] = {
    **{f"conv{rank}d": _convolution(rank) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": _transposed(rank) for rank in (1, 2, 3)},
}
"""Convolutions by operator name."""
