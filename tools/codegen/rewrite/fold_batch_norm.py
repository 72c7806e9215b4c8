"""Batch norms in eval mode, folded into the weights of the convolution or the layer that they normalise.

With s = gamma / sqrt(var + eps), one value a channel of the result, the norm of conv(x, w) + b is conv(x, w * s) + (b - mean) * s + beta
(Jacob et al. 2018, arXiv 1712.05877, 3.2). Weight and bias are made once for all calls, in `pack_weights`. It assumes that values are
finite and that no partial result leaves its dtype's range: a weight times s can overflow where the result that is scaled does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.operators.families import CONVOLUTIONS

EPS, TRAINING = 7, 5
"""Where ATen's batch norm has these arguments; before them its input, weight, bias, mean and variance."""
WEIGHT, BIAS = "folded_weight", "folded_bias"
"""Host functions of the emitted module that make both."""


@dataclass(frozen=True)
class FoldedBatchNorm:
    """A batch norm that its input's weights can hold."""

    product: Node
    """The convolution, or the linear layer."""
    norm: Node


def folded_batch_norms(graph: OperatorGraph) -> tuple[FoldedBatchNorm, ...]:
    """Find every batch norm that can be folded."""
    found = (_find(graph, node) for node in graph.nodes if node.op == "batch_norm")
    return tuple(each for each in found if each is not None)


def with_folded_batch_norms(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Fold the norms that are named, where that has not been done yet: the product takes the norm's name."""
    for name in names:
        node = graph.by_name.get(name)
        found = _find(graph, node) if node is not None and node.op == "batch_norm" else None
        if found is not None:
            graph = _rewrite(graph, found)
    return graph


def _find(graph: OperatorGraph, node: Node) -> FoldedBatchNorm | None:
    if node.args[TRAINING] or not isinstance(node.args[EPS], float) or not all(isinstance(ref, Ref) for ref in node.args[3:5]):
        return None
    source = graph.by_name.get(node.args[0].name)
    if source is None or not _is_foldable(graph, source):
        return None
    parameters = (source.args[1], source.argument(2, "bias"), *node.args[1:5])
    known = [graph.inputs.get(ref.name) for ref in parameters if ref is not None]
    if not all(ref is None or ref.name in graph.fixed for ref in parameters) or any(not meta or meta.dtype != "float32" for meta in known):
        return None
    return FoldedBatchNorm(source, node)


def _is_foldable(graph: OperatorGraph, source: Node) -> bool:
    """Whether nothing but the norm reads a product, and its channels are where a norm looks for them."""
    rank, transposed = CONVOLUTIONS.get(source.op, (0, False))
    if source.op not in (*CONVOLUTIONS, "linear") or len(source.outputs) != 1 or len(source.outputs[0].shape) != rank + 2:
        return False
    if not isinstance(source.args[1], Ref) or (transposed and source.argument(6, "groups", 1) != 1):
        return False
    return len(graph.users.get(source.name, ())) == 1 and Ref(source.name) not in graph.returned


def _rewrite(graph: OperatorGraph, found: FoldedBatchNorm) -> OperatorGraph:
    """Put the product with the packed weights in the norm's place."""
    product, norm = found.product, found.norm
    weight, bias = product.args[1], product.argument(2, "bias")
    gamma, beta, mean, variance = norm.args[1:5]
    eps = norm.args[EPS]
    channels = CONVOLUTIONS.get(product.op, (0, False))[1]
    made = (
        _packed(graph, f"{norm.name}_weight", WEIGHT, (weight, gamma, variance, eps, int(channels)), graph.meta(weight)),
        _packed(graph, f"{norm.name}_bias", BIAS, (bias, gamma, beta, mean, variance, eps), graph.meta(mean)),
    )
    others = {name: value for name, value in product.kwargs.items() if name != "bias"}
    args = (product.args[0], *(Ref(node.name) for node in made), *product.args[3:])
    folded = Node(norm.name, product.target, args, others, product.outputs)
    return replace(
        graph,
        nodes=tuple(folded if node.name == norm.name else node for node in graph.nodes if node.name != product.name),
        inputs={**graph.inputs, **{node.name: node.outputs[0] for node in made}},
        fixed=graph.fixed | {node.name for node in made},
        prepacked=(*graph.prepacked, *made),
    )


def _packed(graph: OperatorGraph, name: str, helper: str, args: tuple[Any, ...], meta: TensorMeta) -> Node:
    """Make an operator of the step of a name that is free."""
    while name in graph.inputs or name in graph.by_name:
        name += "_folded"
    return Node(name, f"helper.{helper}.default", args, {}, (replace(meta, contiguous=True, unit_last=True),))
