"""An average pooling before a convolution whose kernel has one element, instead of after it: means of channels mix as channels do.

Both are linear, one over positions and one over channels, so either may come first. The convolution then has as many fewer positions as the
pooling leaves. A bias stays what it is where the weights of a window sum to one: where no window holds padding that counts as zeros.
"""

from __future__ import annotations

from dataclasses import replace

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.graph_builder import GraphBuilder
from tools.codegen.ir.operators.families import CONVOLUTIONS
from tools.codegen.ir.sizes import is_one

AVERAGES = {f"{kind}avg_pool{rank}d": rank for kind in ("", "adaptive_") for rank in (1, 2, 3)}
"""Average poolings, and their spatial dimensions."""
USUAL = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
"""Numbers of a convolution that leaves positions as they are, by name, in ATen's order after its bias."""


def pooled_convolution(graph: OperatorGraph, pooling: Node) -> Node | None:
    """Find the convolution that may as well come after the average pooling which alone reads it."""
    rank = AVERAGES.get(pooling.op, 0)
    source = graph.by_name.get(pooling.args[0].name) if rank else None
    if source is None or CONVOLUTIONS.get(source.op) != (rank, False) or len(source.outputs) != 1:
        return None
    if len(graph.users[source.name]) != 1 or Ref(source.name) in graph.returned or source.outputs[0].dtype != "float32":
        return None
    if len(source.outputs[0].shape) != rank + 2 or not isinstance(source.args[0], Ref) or not isinstance(source.args[1], Ref):
        return None
    single = all(is_one(sizes) for sizes in graph.meta(source.args[1]).shape[2:])
    return source if single and _leaves_positions(source) and _keeps_bias(source, pooling) else None


def pays(graph: OperatorGraph, pooling: Node, convolution: Node) -> bool:
    """Whether pooling first moves no more than pooling last: what it reads and writes has fewer elements than the result it would read."""
    before, after = (graph.meta(ref).numel for ref in (convolution.args[0], Ref(convolution.name)))
    left = pooling.outputs[0].numel / after
    return left < 1 and before * left <= after


def with_pooling_first(graph: OperatorGraph, pooling: Node, convolution: Node) -> OperatorGraph:
    """Put the pooling before the convolution, which takes its name."""
    builder = GraphBuilder(graph, pooling.name)
    source = graph.meta(convolution.args[0])
    shape = (*source.shape[:2], *pooling.outputs[0].shape[2:])
    pooled = builder.add(pooling.call, (convolution.args[0], *pooling.args[1:]), shape, dict(pooling.kwargs))
    mixed = replace(convolution, name=pooling.name, args=(pooled, *convolution.args[1:]), outputs=pooling.outputs)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name == pooling.name:
            nodes += [*builder.nodes, mixed]
        elif node.name != convolution.name:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _leaves_positions(convolution: Node) -> bool:
    for place, (name, usual) in enumerate(USUAL.items()):
        value = convolution.argument(3 + place, name, usual)
        if name != "groups" and any(each != usual for each in (value if isinstance(value, list | tuple) else [value])):
            return False
    return True


def _keeps_bias(convolution: Node, pooling: Node) -> bool:
    """Whether the mean of a bias over each window is the bias."""
    if convolution.argument(2, "bias") is None or pooling.op.startswith("adaptive"):
        return True
    if pooling.argument(4, "ceil_mode", default=False) or pooling.argument(6, "divisor_override") is not None:
        return False
    padding = pooling.argument(3, "padding", 0)
    padded = any(each != 0 for each in (padding if isinstance(padding, list | tuple) else [padding]))
    return not padded or not pooling.argument(5, "count_include_pad", default=True)
