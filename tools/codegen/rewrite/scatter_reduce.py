"""Reductions by index that memory cannot do at once: means as sums and counts, extremes of floats as those of whole numbers in their order.

Sums of halves are those of float32, and counts by number are additions of ones.
Where what stood there before does not count, a place that no element goes to keeps it all the same.
Such places are known by their count, or by the least of all whole numbers, which no element has.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.graph import DataSized, DType, Node, Raw, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, as_number, is_one, product
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


def counted(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `bincount` as ones, or weights, that are added by number: the graph knows how long it is, so no number is greater."""
    source, weights = node.args[0], node.argument(1, "weights")
    if not all(isinstance(ref, Ref) and not ref.index and ref.name in rewriter.metas for ref in (source, weights) if ref is not None):
        return None
    make = _Reductions(rewriter, node, node.outputs[0])
    if weights is not None and rewriter.metas[weights.name].dtype != make.out.dtype:
        return None
    return make.counted(make.indices(source), weights)


def counted_part(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `bincount(x, minlength=n)[:n]` so: however long the data make it, what lies beyond the slice is not counted."""
    if not isinstance(node, DataSized) or [each.op for each in node.body] != ["bincount", "slice"]:
        return None
    count, part = node.body
    if node.left != (Ref(part.name),):
        return None
    whole = (Ref(count.name), 0, 0, count.argument(2, "minlength"))
    given = node.args[0]
    if count.argument(1, "weights") is not None or part.args != whole or part.kwargs or given.index or given.name not in rewriter.metas:
        return None
    make = _Reductions(rewriter, node, node.outputs[0])
    keys = make.indices(given)
    meta, end = replace(rewriter.metas[given.name], dtype="int64"), as_number(make.out.shape[0])
    inside = make.add("inside", "aten.lt.Scalar", (keys, end), replace(meta, dtype="bool"))
    return make.counted_inside(make.add("kept", "aten.where.ScalarOther", (inside, keys, end), meta))


def histogram(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `histc` between two given numbers as a count of bins: what lies outside, or is no number, goes to one more."""
    source, bins = node.args[0], node.argument(1, "bins", 100)
    least, most = node.argument(2, "min", 0), node.argument(3, "max", 0)
    meta = rewriter.metas.get(source.name) if not source.index else None
    if meta is None or meta.dtype != "float32" or not all(isinstance(edge, int | float) for edge in (least, most)) or least >= most:
        return None
    make = _Reductions(rewriter, node, node.outputs[0])
    line = replace(meta, shape=(product(meta.shape, len(make.out.shape[0])),))
    x = make.add("line", "aten.reshape.default", (source, [-1]), line)
    least, most = _single(least), _single(most)
    above = make.add("above", "aten.sub.Tensor", (x, least), line)
    scaled = make.add("scaled", "aten.mul.Tensor", (above, bins), line)
    share = make.add("share", "aten.div.Tensor", (scaled, _single(most - least)), line)
    number = make.add("number", "aten._to_copy.default", (share,), replace(line, dtype="int64"), {"dtype": DType("int64")})
    # the last bin has its upper edge
    before = make.add("before_end", "aten.lt.Scalar", (number, bins), replace(line, dtype="bool"))
    at_end = make.add("at_end", "aten.sub.Tensor", (number, 1), replace(line, dtype="int64"))
    own = make.add("bin", "aten.where.self", (before, number, at_end), replace(line, dtype="int64"))
    low = make.add("low", "aten.ge.Scalar", (x, least), replace(line, dtype="bool"))
    high = make.add("high", "aten.le.Scalar", (x, most), replace(line, dtype="bool"))
    inside = make.add("inside", "aten.logical_and.default", (low, high), replace(line, dtype="bool"))
    return make.counted_inside(make.add("kept", "aten.where.ScalarOther", (inside, own, bins), replace(line, dtype="int64")))


def _single(number: float) -> float:
    """Round to float32."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


class _Reductions(Maker):
    """Writes the nodes that take the place of a reduction by index."""

    def single(self, ref: Ref, name: str) -> Ref:
        """Give a tensor in float32."""
        meta = replace(self.rewriter.metas[ref.name], dtype="float32")
        number = fill_number(next((each for each in self.rewriter.nodes if each.name == ref.name), None))
        if number is not None:
            return self._filled(name, meta, number)
        return self.add(name, "aten._to_copy.default", (ref,), meta, {"dtype": DType("float32")})

    def indices(self, ref: Ref) -> Ref:
        """Give whole numbers that may index."""
        meta = self.rewriter.metas[ref.name]
        return (
            ref
            if meta.dtype == "int64"
            else self.add("indices", "aten._to_copy.default", (ref,), replace(meta, dtype="int64"), {"dtype": DType("int64")})
        )

    def counted(self, keys: Ref, weights: Ref | None = None) -> Sequence[Node]:
        """Add ones, or weights, to zeros."""
        none = self._filled("none", self.out, 0)
        if weights is not None:
            return self.ended("aten.index_add.default", (none, 0, keys, weights))
        return self.ended("aten.scatter.value_reduce", (none, 0, keys, 1), {"reduce": "add"})

    def counted_inside(self, keys: Ref) -> Sequence[Node]:
        """Count numbers, of which those outside name one place more than there are; leave that out."""
        length: Sizes = self.out.shape[0]
        longer = replace(self.out, shape=(tuple(size + 1 for size in length),))
        none = self._filled("none", longer, 0)
        counts = self.add("counts", "aten.scatter.value_reduce", (none, 0, keys, 1), longer, {"reduce": "add"})
        return self.ended("aten.narrow.default", (counts, 0, 0, as_number(length)))

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
