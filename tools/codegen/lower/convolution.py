"""Lower convolutions and their transposes: 1x1 ones as GEMMs, depthwise ones as windows, dense ones for an implicit GEMM."""

from __future__ import annotations

import math
from typing import NamedTuple

from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import Convolution, Depthwise
from tools.codegen.ir.graph import LaidOut, Node, Placed, Ref
from tools.codegen.ir.kernel import Contraction, Lowered
from tools.codegen.ir.operators.norm_bounds import SCALE, bounded_source
from tools.codegen.ir.sizes import Sizes, Varying, is_one
from tools.codegen.lower.region.lowering import Lowering, Rule

FEW_TAPS = 25
"""Elements of a kernel over a single channel up to which ordinary cores take no longer for its sums than memory for what they are."""


def _convolution(rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        stride, dilation = (numbers_of(node.argument(place, name, 1), rank) for place, name in ((3, "stride"), (5, "dilation")))
        weight, groups = low.graph.meta(node.args[1]), node.argument(6, "groups", 1)
        padding = numbers_of(padding_of(node.argument(4, "padding", 0), weight.shape[2:], dilation or ()), rank)
        if stride is None or padding is None or dilation is None:
            raise LoweringError(f"{node.target} with more padding at an end than at the other, or numbers that vary, is not generated")
        if low.is_claimed:
            raise LoweringError("a convolution shares its kernel with pointwise operators only")
        unit = all(is_one(sizes) for sizes in weight.shape[2:]) and set(stride) == {1} and set(padding) == {0}
        single = is_one(weight.shape[1]) and (groups != 1 or not (isinstance(node, LaidOut) or _has_many_taps(weight.shape[2:])))
        if isinstance(node, LaidOut) and single:
            raise LoweringError(f"{node.target} of single channels that lie last is the library's; take its memory format back first")
        if single:
            _depthwise(low, node, _Numbers(stride, padding, dilation, (0,) * rank), groups, transposed=False)
        elif (
            unit
            and groups == 1
            and not isinstance(node, LaidOut)
            and not any(isinstance(low.graph.by_name[n], Placed) for n in low.members)
        ):
            _pointwise(low, node)
        else:
            _dense(low, node, _Numbers(stride, padding, dilation, (0,) * rank), _number_of(groups, node), transposed=False)

    return rule


def _transposed(rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        names = (("stride", 3, 1), ("padding", 4, 0), ("output_padding", 5, 0), ("dilation", 7, 1))
        stride, padding, extra, dilation = (numbers_of(node.argument(place, name, usual), rank) for name, place, usual in names)
        if stride is None or padding is None or extra is None or dilation is None:
            raise LoweringError(f"{node.target} with numbers that vary with the sizes is not generated")
        if low.is_claimed:
            raise LoweringError("a convolution shares its kernel with pointwise operators only")
        groups = node.argument(6, "groups", 1)
        numbers = _Numbers(stride, padding, dilation, extra)
        if groups != 1 and _spread(groups, low) == low.graph.meta(node.args[1]).shape[0]:
            if isinstance(node, LaidOut):
                raise LoweringError(f"{node.target} of single channels that lie last is the library's; take its memory format back first")
            _depthwise(low, node, numbers, groups, transposed=True)
            return
        _dense(low, node, numbers, _number_of(groups, node), transposed=True)

    return rule


def _has_many_taps(size: tuple[Sizes, ...]) -> bool:
    """Whether sums over one channel are long enough for tensor cores."""
    return math.prod(sizes[0] for sizes in size) > FEW_TAPS


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
    scaled = node.kwargs.get(SCALE)
    read = (source, weight, *((low.read_as_it_is(scaled),) if scaled else ()))
    places = [low.b.exprs[each.value.id].extra for each in read]
    low.convolution = Convolution(
        size=tuple(sizes[0] for sizes in weight_shape[2:]), **numbers._asdict(), expr=value.id, source=places[0], weight=places[1],
        dims=dims, transposed=transposed, groups=groups,
        channels=tuple(sizes // groups for sizes in weight_shape[0]) if transposed else weight_shape[1],
        scale=places[2] if scaled else -1, handed=bool(scaled) or bounded_source(low.graph, node) is not None,
    )  # fmt: skip
    if not last:
        _finish(low, node, value, dims)
        return
    bias = node.argument(2, "bias")
    if isinstance(bias, Ref):
        operand = low.value(bias)
        low.b.atoms.unify(channel, operand.dims[0])
        value = value + low.b.compute(operand.value, value.dtype)
    low.define(node, value, low.b.atoms.resolve((source.dims[0], channel, *spatial)))


def _pointwise(low: Lowering, node: Node) -> None:
    """A kernel of one element: the weights times the channels, at every position, or of every image where it has one position."""
    atoms = low.b.atoms
    source, weight = low.read_again(node.args[0]), low.read_again(node.args[1])
    if len(source.dims) != len(node.outputs[0].shape) or not source.dims[1] or not weight.dims[0]:
        raise LoweringError(f"{node.target} with one channel, or without a batch, is not generated")
    atoms.unify(weight.dims[1], source.dims[1])
    batch, rows = atoms.leaves(source.dims[0]), atoms.leaves(weight.dims[0])
    inner, cols = atoms.leaves(weight.dims[1]), atoms.leaves(atom for dim in source.dims[2:] for atom in dim)
    if not cols:
        # at a single position the images are the rows of one product
        batch, cols = (), batch
    if not cols or not inner:
        raise LoweringError(f"{node.target} of one image at a single position, or of one channel, is not generated")
    value = _leaf(low, node, "product", (*batch, *rows, *cols))
    # the weights are the right operand: they lie along the sum, which is what tensor cores want of it
    low.contraction = Contraction(source, weight, batch, cols, rows, inner, value.id, convolves=True)
    _finish(low, node, value, (source.dims[0], weight.dims[0], *source.dims[2:]))


def _depthwise(low: Lowering, node: Node, numbers: _Numbers, groups: object, transposed: bool) -> None:
    """Each channel of the input by itself, into one channel of the result or several."""
    shape, weight_shape = node.outputs[0].shape, low.graph.meta(node.args[1]).shape
    if any(len(set(sizes)) > 1 for sizes in weight_shape[2:]):
        raise LoweringError(f"{node.target} whose kernel's size varies with the problem's sizes is not generated")
    multipliers = {channels // own for channels, own in zip(shape[1], _spread(groups, low), strict=True)}
    spatial = low.b.atoms.dims(shape[2:])
    lone = is_one(shape[1]) and (is_one(shape[0]) or len(spatial) == 1)
    if len(shape) != 2 + len(numbers.stride) or not all(spatial) or len(multipliers) > 1 or lone:
        raise LoweringError(
            f"{node.target} of single channels to one element along a dimension, of one line, or without a batch, is not generated"
        )
    source, weight = low.read_as_it_is(node.args[0]), low.read_as_it_is(node.args[1])
    (multiplier,) = multipliers
    channel = source.dims[1] if multiplier == 1 else low.b.atoms.dims((shape[1],))[0]
    if channel and (multiplier == 1 or not transposed):
        low.b.atoms.unify(channel, weight.dims[0])
    dims = low.b.atoms.resolve((source.dims[0], channel, *spatial))
    value = _leaf(low, node, "depthwise", tuple(atom for dim in dims for atom in dim))
    places = [low.b.exprs[read.value.id].extra for read in (source, weight)]
    low.depthwise = Depthwise(
        size=tuple(sizes[0] for sizes in weight_shape[2:]), **numbers._asdict(), expr=value.id, source=places[0], weight=places[1],
        dims=dims, multiplier=multiplier, transposed=transposed,
    )  # fmt: skip
    _finish(low, node, value, dims)


def _leaf(low: Lowering, node: Node, op: str, atoms: tuple[int, ...]) -> Value:
    dtype = node.outputs[0].dtype
    if dtype not in ("float16", "bfloat16", "float32"):
        raise LoweringError(f"convolutions in {dtype} are not generated")
    value = low.b.leaf(op, COMPUTE[dtype], atoms)
    low.b.label(value, "acc")
    return value


def _finish(low: Lowering, node: Node, value: Value, dims: tuple[tuple[int, ...], ...]) -> None:
    """Add the bias of each channel."""
    bias = node.argument(2, "bias")
    if isinstance(bias, Ref):
        operand = low.value(bias)
        aligned = Lowered(operand.value, (operand.dims[0], *((),) * (len(dims) - 2)))
        low.b.atoms.broadcast(dims, aligned.dims)
        value = value + low.b.compute(aligned.value, value.dtype)
    low.define(node, value, dims)


def _spread(groups: object, low: Lowering) -> tuple[int, ...]:
    """Number of groups in every trace."""
    values = groups.values if isinstance(groups, Varying) else (groups,) * low.graph.traces
    return tuple(int(value) for value in values if isinstance(value, int))


def padding_of(value: object, size: tuple[Sizes, ...], dilation: tuple[int, ...]) -> object:
    """Write padding that is given by name as numbers; as it is where it has none, or is not the same at both ends."""
    if value == "valid":
        return 0
    reach = [step * (extent[0] - 1) for extent, step in zip(size, dilation, strict=False)]
    return [each // 2 for each in reach] if value == "same" and not any(each % 2 for each in reach) else value


def numbers_of(value: object, rank: int) -> tuple[int, ...] | None:
    """Repeat one number for every dimension; None for what is not whole numbers."""
    values = [value] if isinstance(value, int) else list(value) if isinstance(value, list | tuple) else []
    values = values * rank if len(values) == 1 else values
    return tuple(values) if len(values) == rank and all(isinstance(each, int) for each in values) else None


CONVOLUTION_RULES: dict[str, Rule] = {
    **{f"conv{rank}d": _convolution(rank) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": _transposed(rank) for rank in (1, 2, 3)},
}
"""Convolutions by operator name."""
