"""Reductions by index that memory cannot do at once: means as sums and counts, extremes of floats as those of whole numbers in their order.

Sums of halves are those of float32. Where what stood there before does not count, a place that no element goes to keeps it all the same.
Such places are known by their count, or by the least of all whole numbers, which no element has.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.graph import DType, Node, Raw, Ref, TensorMeta
from tools.codegen.ir.sizes import as_number, is_one
from tools.codegen.rewrite.maker import Maker
from tools.codegen.rewrite.rewriter import Rewriter

HALVES = frozenset({"float16", "bfloat16"})
LEAST, MOST = -(2**31), 2**31 - 1


def reduced_by_index(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a reduction by index as additions or maxima of whole numbers, and what is made of them."""
    base, dim, index, source, kind = node.args[:5]
    includes = bool(node.argument(5, "include_self", True))
    metas = [rewriter.metas.get(ref.name) if isinstance(ref, Ref) and not ref.index else None for ref in (index, source)]
    out = node.outputs[0]
    if not out.shape or None in metas or metas[0].shape != metas[1].shape or not is_floating(out.dtype) or out.dtype == "float64":  # type: ignore[union-attr]
        return None
    make = _Reductions(rewriter, node, out)
    if kind in ("amax", "amin"):
        return make.extreme(base, int(dim), index, source, kind == "amin", includes)
    if kind not in ("mean", "sum") or out.dtype != "float32" or (kind == "sum" and includes):
        return None
    return make.average(base, int(dim), index, source, kind == "mean", includes)


def halves_by_index(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write additions of halves by index as those of float32, rounded once: memory adds no halves."""
    base, dim, index, source, *more = node.args
    out = node.outputs[0]
    if out.dtype not in HALVES or not all(isinstance(ref, Ref) and not ref.index for ref in (base, source)):
        return None
    make = _Reductions(rewriter, node, replace(out, dtype="float32"))
    given = (make.single(base, "before"), dim, index, make.single(source, "source"), *more)
    total = make.add("total", node.target, given, make.out, dict(node.kwargs))
    return make.ended("aten._to_copy.default", (total,), {"dtype": DType(out.dtype)})


class _Reductions(Maker):
    """Writes the nodes that take the place of a reduction by index."""

    def single(self, ref: Ref, name: str) -> Ref:
        """Give a tensor in float32."""
        meta = replace(self.rewriter.metas[ref.name], dtype="float32")
        number = fill_number(next((each for each in self.rewriter.nodes if each.name == ref.name), None))
        if number is not None:
            return self._filled(name, meta, number)
        return self.add(name, "aten._to_copy.default", (ref,), meta, {"dtype": DType("float32")})

    def extreme(self, base: Ref, dim: int, index: Ref, source: Ref, is_least: bool, includes: bool) -> Sequence[Node]:
        """The largest element by its bits; the least one is the largest of what is negated, since what is no number goes before all."""
        bits = replace(self.out, dtype="int32")

        def sortable(ref: Ref, name: str, meta: TensorMeta) -> Ref:
            number = fill_number(next((each for each in self.rewriter.nodes if each.name == ref.name), None))
            if number is not None:
                return self._filled(name, replace(meta, dtype="int32"), ordered_bits(-number if is_least else number))
            given = self.add(f"{name}_negated", "aten.neg.default", (ref,), meta) if is_least else ref
            return self.add(name, "order.sortable.default", (given,), replace(meta, dtype="int32"))

        before = sortable(base, "before", self.out) if includes else self._filled("before", bits, LEAST)
        keys = sortable(source, "keys", self.rewriter.metas[source.name])
        best = self.add("best", "aten.scatter_reduce.two", (before, dim, index, keys, "amax"), bits)
        if includes and not is_least:
            return self.ended("order.unsorted.default", (best,))
        found = self.add("found", "order.unsorted.default", (best,), self.out)
        if includes:
            return self.ended("aten.neg.default", (found,))
        found = self.add("turned", "aten.neg.default", (found,), self.out) if is_least else found
        missed = self.add("missed", "aten.eq.Scalar", (best, LEAST), replace(self.out, dtype="bool"))
        return self.ended("aten.where.self", (missed, base, found))

    def average(self, base: Ref, dim: int, index: Ref, source: Ref, is_mean: bool, includes: bool) -> Sequence[Node]:
        """Sums over counts, which are the same along dimensions over which the index was expanded."""
        before = base if includes else self._filled("before", self.out, 0.0)
        total = self.add("total", "aten.scatter_add.default", (before, dim, index, source), self.out)
        narrow = self.narrow(index)
        own, place = self.rewriter.metas[narrow.name].shape, dim % len(self.out.shape)
        shape = tuple(
            (1,) * len(size) if at != place and is_one(seen) else size
            for at, (size, seen) in enumerate(zip(self.out.shape, own, strict=True))
        )
        counted = TensorMeta(shape, "int32")
        none = self._filled("none", counted, 0)
        count = self.add("count", "aten.scatter.value_reduce", (none, dim, narrow, 1), counted, {"reduce": "add"})
        if includes:
            more = self.add("more", "aten.add.Tensor", (count, 1), counted)
            return self.ended("aten.div.Tensor", (total, more))
        found = self.add("mean", "aten.div.Tensor", (total, count), self.out) if is_mean else total
        hit = self.add("hit", "aten.gt.Scalar", (count, 0), replace(counted, dtype="bool"))
        return self.ended("aten.where.self", (hit, found, base))

    def _filled(self, name: str, meta: TensorMeta, number: float) -> Ref:
        sizes = [as_number(size) for size in meta.shape]
        options = {"dtype": DType(meta.dtype), "device": Raw("device")}
        return self.add(name, "aten.full.default", (sizes, number), meta, options)


def ordered_bits(number: float) -> int:
    """Write a number of float32 as the whole number that the device function of this name makes of it."""
    if math.isnan(number):
        return MOST
    (bits,) = struct.unpack("i", struct.pack("f", number + 0.0))
    return bits ^ MOST if bits < 0 else int(bits)
