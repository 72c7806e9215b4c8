"""What a mask lets in, one after the other: the place of each in the source is how many were let in before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.sizes import as_number, is_one, product
from tools.codegen.rewrite.maker import Maker
from tools.codegen.rewrite.rewriter import Rewriter


def placed_by_mask(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `x.masked_scatter(mask, source)` as a running count of the mask, rows of the source by it, and a choice.

    A mask that was expanded along its last dimensions lets in whole rows, as where a model's image tokens take their places.
    """
    base, mask, source = node.args
    out = node.outputs[0]
    if not all(isinstance(ref, Ref) and not ref.index and ref.name in rewriter.metas for ref in (base, mask, source)):
        return None
    shapes = {ref: rewriter.metas[ref.name].shape for ref in (base, mask, source)}
    if shapes[base] != out.shape or shapes[mask] != out.shape or not out.shape:
        return None
    make = Maker(rewriter, node, out)
    narrow = make.narrow(mask)
    own = rewriter.metas[narrow.name].shape
    wide = next((count for count, (size, seen) in enumerate(zip(out.shape[::-1], own[::-1], strict=True)) if size == seen), len(own))
    rows, row = out.shape[: len(own) - wide], out.shape[len(own) - wide :]
    if (
        own[: len(rows)] != rows
        or shapes[source][len(shapes[source]) - wide :] != row
        or not all(is_one(size) for size in own[len(rows) :])
    ):
        return None
    traces = len(out.shape[0])
    count = product(rows, traces)
    flags = replace(rewriter.metas[narrow.name], shape=(count,))
    flat = make.add("flat", "aten.reshape.default", (narrow, [-1]), flags)
    passed = make.add("passed", "aten.cumsum.default", (flat, 0), replace(flags, dtype="int64"))
    before = make.add("before", "aten.sub.Tensor", (passed, 1), replace(flags, dtype="int64"))
    # where none was let in yet any row will do
    place = make.add("place", "aten.clamp_min.default", (before, 0), replace(flags, dtype="int64"))
    source_rows = product(shapes[source][: len(shapes[source]) - wide], traces)
    meta = rewriter.metas[source.name]
    lines = make.add("lines", "aten.reshape.default", (source, [-1, *map(as_number, row)]), replace(meta, shape=(source_rows, *row)))
    picked = make.add("picked", "aten.index.Tensor", (lines, (place,)), replace(meta, shape=(count, *row)))
    found = make.add("found", "aten.reshape.default", (picked, [*map(as_number, out.shape)]), replace(meta, shape=out.shape))
    return make.ended("aten.where.self", (mask, found, base))
