"""The largest elements of a row too long for one program, in two steps: of each chunk the largest, then the chunks that can hold any.

An element among the k largest lies in one of the k chunks whose own largest come first: each chunk before its own holds one that is larger.
So k chunks are read again, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.sizes import Varying, power_of_two
from tools.codegen.rewrite.rewriter import Rewriter

LONGEST = 8192
"""Elements of a row from which on it is done in two steps, and those of which the second may choose."""
MOST_CHUNKS = 4096
SHORTEST = 64
"""Elements of a chunk, at least."""


def chunked_topk(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a selection from long rows as the largest of chunks and a selection from some of them."""
    source, given = node.args[0], node.args[1]
    meta = rewriter.metas.get(source.name) if source.index == 0 else None
    dim, largest = node.argument(2, "dim", -1), node.argument(3, "largest", True)
    if meta is None or not meta.shape or largest is not True or dim % len(meta.shape) != len(meta.shape) - 1:
        return None
    length, count = meta.written[-1], int(max(given.values)) if isinstance(given, Varying) else int(given)
    chunk = max(SHORTEST, power_of_two(-(-length // MOST_CHUNKS)))
    if not is_floating(meta.dtype) or meta.dtype == "float64" or length <= LONGEST or count < 1 or power_of_two(count) * chunk > LONGEST:
        return None
    found = replace(meta, shape=(*meta.shape[:-1], tuple(-(-size // chunk) for size in meta.shape[-1])))
    best = Node(f"{node.name}_chunks", "order.chunk_maxima.default", (source, chunk), {}, (found,))
    return best, Node(node.name, "order.topk_of_chunks.default", (source, Ref(best.name), given, chunk), {}, node.outputs)
