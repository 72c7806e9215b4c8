"""A convolution's bias as an addition of its own, which joins the kernels after it.

PyTorch adds the bias of a cuDNN convolution in a pass over the result. An addition in the graph becomes part of whatever is generated
after the convolution, and costs nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.graph_builder import GraphBuilder, with_others
from tools.codegen.ir.operators.families import CONVOLUTIONS

BIAS = 2
"""Where ATen's convolutions have it."""
WITHOUT = "unbiased"
"""What the convolution's name then ends with: its own goes to the addition, which others read."""


def separable_biases(graph: OperatorGraph) -> tuple[str, ...]:
    """Name the convolutions that have a bias, and a result that is not returned as it is: then nothing is there to add it to."""
    return tuple(node.name for node in graph.nodes if _is_separable(graph, node) and Ref(node.name) not in graph.returned)


def with_separate_biases(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Write the named convolutions without their bias, where that has not been done yet, and an addition after each."""
    return with_others(graph, names, partial(_is_separable, graph), partial(_separated, graph))


def _is_separable(graph: OperatorGraph, node: Node) -> bool:
    rank, _ = CONVOLUTIONS.get(node.op, (0, False))
    batched = bool(rank) and len(node.outputs) == 1 and len(node.outputs[0].shape) == rank + 2
    bias = node.argument(BIAS, "bias") if batched else None
    return isinstance(bias, Ref) and graph.meta(bias).dtype == node.outputs[0].dtype


def _separated(graph: OperatorGraph, node: Node) -> list[Node]:
    builder = GraphBuilder(graph, node.name)
    bias = node.argument(BIAS, "bias")
    for _ in node.outputs[0].shape[2:]:
        bias = builder.call("unsqueeze.default", bias, -1)
    name = f"{node.name}_{WITHOUT}"
    while name in builder.taken:
        name += "_"
    args = (*node.args[:BIAS], None, *node.args[BIAS + 1 :]) if len(node.args) > BIAS else node.args
    others = {key: value for key, value in node.kwargs.items() if key != "bias"}
    added = Node(node.name, "aten.add.Tensor", (Ref(name), bias), {}, node.outputs)
    return [Node(name, node.target, args, others, node.outputs), *builder.nodes, added]
