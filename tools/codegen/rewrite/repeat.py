"""Repetitions as the views that they are: a new dimension, expanded, and made one with its neighbour; values that fill a tensor; rolls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.graph import DType, Node, Raw, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, Varying, as_number, product
from tools.codegen.rewrite.maker import Maker
from tools.codegen.rewrite.rewriter import Rewriter


def interleave(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `repeat_interleave` by a number along a dimension; None where it stays as it is."""
    source, repeats, dim = node.args[0], node.argument(1, "repeats"), node.argument(2, "dim")
    meta = rewriter.metas.get(source.name) if isinstance(source, Ref) and source.index == 0 else None
    counts = _counts(repeats, meta)
    if meta is None or counts is None or not isinstance(dim, int) or node.overload != "self_int":
        return None
    return _repeated(node, source, meta, {dim % len(meta.shape): counts}, after=True)


def tiled(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `repeat` along the dimensions that a tensor has; None where it stays as it is.

    Times that vary with the sizes stay: pairs of all rows have one side repeated and the other interleaved, and no split is common to both.
    """
    source, repeats = node.args[0], node.argument(1, "repeats")
    meta = rewriter.metas.get(source.name) if isinstance(source, Ref) and source.index == 0 else None
    if meta is None or not all(isinstance(count, int) and count > 0 for count in repeats) or len(repeats) != len(meta.shape):
        return None
    traces = len(meta.shape[0])
    return _repeated(node, source, meta, {place: (count,) * traces for place, count in enumerate(repeats) if count > 1}, after=False)


def rolled(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a roll that names no dimension as one of the tensor as one row; None where it names some."""
    source, out = node.args[0], node.outputs[0]
    if node.argument(2, "dims", []) or source.index or source.name not in rewriter.metas:
        return None
    make = Maker(rewriter, node, out)
    line = replace(out, shape=(product(out.shape, len(out.shape[0])),)) if out.shape else out
    if len(out.shape) < 2:
        return make.ended(node.target, (source, node.args[1], [0])) if out.shape else None
    row = make.add("row", "aten.reshape.default", (source, [-1]), line)
    moved = make.add("moved", node.target, (row, node.args[1], [0]), line)
    return make.ended("aten.reshape.default", (moved, [as_number(size) for size in out.shape]))


def _counts(repeats: Any, meta: TensorMeta | None) -> Sizes | None:
    """Tell how often something is repeated in each trace; None where that is no number, or not once."""
    if meta is None or not meta.shape:
        return None
    given = repeats.values if isinstance(repeats, Varying) else (repeats,) * len(meta.shape[0])
    told = tuple(count for count in given if type(count) is int and count > 0)
    return told if len(told) == len(given) else None


def _repeated(node: Node, source: Ref, meta: TensorMeta, repeats: dict[int, Sizes], *, after: bool) -> Sequence[Node] | None:
    """Repeat elements (`after`) or whole dimensions."""
    if not repeats:
        return None
    traces = len(meta.shape[0])
    nodes: list[Node] = []
    shape, ref, strided = list(meta.shape), source, replace(meta, contiguous=False, unit_last=False)
    wide: list[Sizes] = []
    for place, sizes in enumerate(meta.shape):
        count = repeats.get(place, (1,) * traces)
        wide += [sizes] if place not in repeats else [sizes, count] if after else [count, sizes]
    added = 0
    for place in sorted(repeats):
        at = place + added + (1 if after else 0)
        shape.insert(at, (1,) * traces)
        name = f"{node.name}_spread_{place}"
        nodes.append(Node(name, "aten.unsqueeze.default", (ref, at), {}, (replace(strided, shape=tuple(shape)),)))
        ref, added = Ref(name), added + 1
    expanded = f"{node.name}_repeated"
    nodes.append(
        Node(expanded, "aten.expand.default", (ref, [as_number(size) for size in wide]), {}, (replace(strided, shape=tuple(wide)),))
    )
    shaped = [as_number(size) for size in node.outputs[0].shape]
    return (*nodes, Node(node.name, "aten.reshape.default", (Ref(expanded), shaped), {}, node.outputs))


def filled(rewriter: Rewriter, node: Node) -> Sequence[Node]:
    """Write `x.fill_(value)`, `x.zero_()` and `x.copy_(value)`: nothing of the tensor but its shape and its dtype is left.

    A number in an assignment, `x[:, 0] = 1`, is traced as a tensor without dimensions.
    """
    out = node.outputs[0]
    value = 0 if node.op == "zero" else node.args[1]
    if isinstance(value, Ref):
        made = next((each for each in rewriter.nodes if each.name == value.name), None)
        if made is not None and made.op == "scalar_tensor":
            value = made.args[0]
    if not isinstance(value, Ref):
        return (Node(node.name, "aten.full_like.default", (node.args[0], value), {}, (out,)),)
    meta = rewriter.metas[value.name]
    if meta.shape == out.shape:
        return (Node(node.name, "aten.to.dtype", (value, DType(out.dtype)), {}, (out,)),)
    found = []
    if meta.dtype != out.dtype:
        found.append(
            Node(f"{node.name}_cast", "aten._to_copy.default", (value,), {"dtype": DType(out.dtype)}, (replace(meta, dtype=out.dtype),))
        )
        value = Ref(f"{node.name}_cast")
    like = Node(f"{node.name}_like", "aten.zeros_like.default", (node.args[0],), {}, (out,))
    spread = Node(node.name, "aten.expand_as.default", (value, Ref(like.name)), {}, (replace(out, contiguous=False),))
    return *found, like, spread


def number(_: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a cast of a plain number, as derivatives have them, as a tensor of it on the device; None of a tensor's cast."""
    if not isinstance(node.args[0], bool | int | float):
        return None
    wanted = {"dtype": DType(node.outputs[0].dtype), "device": Raw("device")}
    return (Node(node.name, "aten.scalar_tensor.default", node.args[:1], wanted, node.outputs),)


def seed(_: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a number that is asked to be like another one, as where a derivative starts, without it: then nothing need make that one."""
    out, value = node.outputs[0], fill_number(node)
    if out.shape or value is None or not isinstance(node.args[0], Ref):
        return None
    return (Node(node.name, "aten.full.default", ([], value), {"dtype": DType(out.dtype), "device": Raw("device")}, (out,)),)
