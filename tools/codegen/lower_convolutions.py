"""Lower the convolutions that a kernel of ours can do better than the library: pointwise ones as products, depthwise ones as windows."""

from __future__ import annotations

from collections.abc import Callable

from tools.codegen.expressions import COMPUTE, Expr, LoweringError, Value
from tools.codegen.graph import Node, Ref
from tools.codegen.layouts import LaidOut
from tools.codegen.lowering import Contraction, Depthwise, Lowered, Lowering
from tools.codegen.row_operand import argument
from tools.codegen.sizes import Varying, is_one

Rule = Callable[[Lowering, Node], None]


def _convolution(rank: int) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        if isinstance(node, LaidOut):
            raise LoweringError(f"{node.target} with its channels last is the library's; take its memory format back first")
        stride, padding, dilation = (_each(argument(node, place, name, usual), rank) for place, name, usual in _NUMBERS)
        groups = argument(node, 6, "groups", 1)
        if stride is None or padding is None or dilation is None:
            raise LoweringError(f"{node.target} with padding by name, or numbers that vary with the sizes, is not generated")
        if low.window is not None or low.contraction is not None or low.depthwise is not None or low.reduced:
            raise LoweringError("a convolution shares its kernel with pointwise operators only")
        weight = low.graph.meta(node.args[1])
        unit = all(is_one(sizes) for sizes in weight.shape[2:]) and set(stride) == {1} and set(padding) == {0}
        if unit and groups == 1:
            _pointwise(low, node)
        elif rank == 2 and groups != 1 and is_one(weight.shape[1]) and _spread(groups, low) == weight.shape[0]:
            _depthwise(low, node, stride, padding, dilation)
        else:
            raise LoweringError(f"{node.target} is left to the library unless it is pointwise or depthwise in two dimensions")

    return rule


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
    low.contraction = Contraction(weight, source, batch, rows, cols, inner, value.id)
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
    low.depthwise = Depthwise(source_place, weight_place, size, stride, padding, dilation, dims, value.id)
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

CONVOLUTIONS: dict[str, Rule] = {f"conv{rank}d": _convolution(rank) for rank in (1, 2, 3)}
"""Convolutions by operator name."""
