"""Values that are made of positions and numbers alone: masks of triangles, powers of two, the rows of an identity. No kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.graph import DType, Formula, Node, OperatorGraph, Raw, Ref, TensorMeta
from tools.codegen.ir.operators import CASTS
from tools.codegen.ir.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.ir.views import is_view
from tools.codegen.rewrite.rewriter import Rewriter

SOURCES = frozenset({"arange", "numbers", "scalar_tensor"})
"""Operators that read no tensor."""
COMPUTED = frozenset({*ARITHMETIC, *LOGIC, *CASTS, "cat", "stack"})
"""Operators that a formula is made with."""


def with_formulas(graph: OperatorGraph) -> OperatorGraph:
    """Mark what reads nothing but positions and numbers, and is returned by nobody."""
    made: set[str] = set()
    returned = {ref.name for ref in graph.returned}
    nodes: list[Node] = []
    for node in graph.nodes:
        alone = {ref.name for ref in node.refs} <= made and node.name not in graph.effects and len(node.outputs) == 1
        if node.op in SOURCES or fill_number(node) is not None or (alone and node.refs and is_view(node)):
            made.add(node.name)
        elif alone and node.refs and node.op in COMPUTED and node.name not in returned and type(node) is Node:
            made.add(node.name)
            nodes.append(Formula(node.name, node.target, node.args, node.kwargs, node.outputs))
            continue
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def identity_matrix(_: Rewriter, node: Node) -> Sequence[Node]:
    """Write an identity as rows and columns that are compared."""
    out = node.outputs[0]
    wanted = {"dtype": DType("int64"), "device": Raw("device")}
    rows, columns = (
        Node(f"{node.name}_{word}", "aten.arange.default", (node.args[place],), wanted, (TensorMeta((sizes,), "int64"),))
        for word, place, sizes in (("rows", 0, out.shape[0]), ("columns", len(node.args) - 1, out.shape[1]))
    )
    apart = Node(
        f"{node.name}_apart",
        "aten.unsqueeze.default",
        (Ref(rows.name), 1),
        {},
        (TensorMeta((out.shape[0], (1,) * len(out.shape[0])), "int64"),),
    )
    equal = Node(f"{node.name}_equal", "aten.eq.Tensor", (Ref(apart.name), Ref(columns.name)), {}, (replace(out, dtype="bool"),))
    return rows, columns, apart, equal, Node(node.name, "aten._to_copy.default", (Ref(equal.name),), {"dtype": DType(out.dtype)}, (out,))
