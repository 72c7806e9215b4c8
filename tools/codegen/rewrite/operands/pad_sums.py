"""Products whose rows begin where no wide load of halves can: both operands get zeros behind the summed dimension.

Zeros add nothing to a sum. The one operand is often made by a kernel anyway, which then writes longer rows; the other one is a weight,
whose copy is small or can be prepacked. Of float32 it is the halves that are unaligned which a split-float product writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.graph_builder import GraphBuilder, with_others
from tools.codegen.ir.shares import FILLED
from tools.codegen.ir.sizes import Sizes, Varying

HALVES = frozenset({"float16", "bfloat16"})
FILLED_DTYPES = HALVES | {"float32"}
ALIGNED = 8
"""Halves in 16 bytes, which cuBLAS's fast kernels load at once."""
SUMS = frozenset({"linear", "mm", "matmul"})
TURNS = frozenset({"t", "transpose", "numpy_T", "mT"})


def unaligned_sums(graph: OperatorGraph) -> tuple[str, ...]:
    """Name the products whose summed dimension is unaligned for halves at the sizes as written."""
    return tuple(node.name for node in graph.nodes if is_unaligned(graph, node, FILLED_DTYPES))


def is_unaligned(graph: OperatorGraph, node: Node, dtypes: frozenset[str] = HALVES) -> bool:
    """Whether a node is such a product, of one of these dtypes."""
    if node.op not in SUMS or node.outputs[0].dtype not in dtypes:
        return False
    left, right = (graph.meta(ref).shape for ref in node.args[:2])
    return len(left) >= 2 and len(right) == 2 and left[-1][0] % ALIGNED != 0


def makes_unaligned(graph: OperatorGraph, node: Node) -> bool:
    """Whether a node is a product whose result is unaligned halves: its own rows, of which there are several."""
    if node.op not in SUMS or node.outputs[0].dtype not in HALVES or len(graph.meta(node.args[1]).shape) != 2:
        return False
    *rows, columns = (sizes[0] for sizes in node.outputs[0].shape)
    return math.prod(rows) > 1 and columns > 1 and columns % ALIGNED != 0


def with_padded_sums(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Fill the named products' operands up with zeros, where that has not been done yet."""
    return with_others(graph, names, lambda node: is_unaligned(graph, node, FILLED_DTYPES), partial(_padded, graph))


def _padded(graph: OperatorGraph, node: Node) -> list[Node]:
    """Write the fillings and the product; one that is the transpose of a matrix is filled before it is turned."""
    builder = GraphBuilder(graph, node.name)
    left, right = node.args[:2]
    more = tuple(-size % FILLED for size in graph.meta(left).shape[-1])
    turned = graph.by_name.get(right.name)
    if node.op == "linear":
        new = _filled(builder, right, -1, more)
    elif turned is not None and turned.op in TURNS and len(graph.meta(turned.args[0]).shape) == 2:
        new = builder.call("t.default", _filled(builder, turned.args[0], -1, more))
    elif graph.meta(right).shape[-1][0] % ALIGNED:
        # its rows are unaligned, too: it is written along the sum
        new = builder.call("t.default", _filled(builder, builder.call("t.default", right), -1, more))
    else:
        new = _filled(builder, right, -2, more)
    product = replace(node, args=(_filled(builder, left, -1, more), new, *node.args[2:]))
    return [*builder.nodes, product]


def _filled(builder: GraphBuilder, ref: Ref, dim: int, more: Sizes) -> Ref:
    shape = list(builder.meta(ref).shape)
    shape[dim] = tuple(size + extra for size, extra in zip(shape[dim], more, strict=True))
    written = more[0] if len(set(more)) == 1 else Varying(more)
    return builder.add("pad.default", (ref, [0, 0] * (-dim - 1) + [0, written]), tuple(shape))
