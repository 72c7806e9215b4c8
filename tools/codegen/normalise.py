"""Rewrite a merged graph into fewer kinds of operators, each rewrite an identity that holds for all inputs.

Identities (eval-mode dropout, clone, contiguous, casts to the same dtype) vanish; `glu` becomes two slices, a sigmoid and a
product; a classification loss with a mean or a sum becomes its loss by row and a reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.sizes import Sizes

IDENTITIES = {"clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh"}
CASTS = {"to", "_to_copy", "type_as", "float", "half", "bfloat16", "double"}
REDUCTION_NONE, REDUCTION_MEAN = 0, 1


def normalise(graph: OperatorGraph) -> OperatorGraph:
    """Apply every rewrite once, in order of the nodes."""
    rewriter = _Rewriter(graph)
    for node in graph.nodes:
        rewriter.add(node)
    return replace(graph, nodes=tuple(rewriter.nodes), outputs=rewriter.substitute(graph.outputs))


class _Rewriter:
    """Collects the new nodes and which old values they stand for."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.replaced: dict[Ref, Ref] = {}
        self.metas = dict(graph.inputs)

    def add(self, node: Node) -> None:
        """Rewrite one node."""
        node = replace(node, args=self.substitute(node.args), kwargs=self.substitute(node.kwargs))
        if self._is_identity(node):
            self.replaced[Ref(node.name)] = node.refs[0]
            return
        rule = RULES.get(node.op)
        new = rule(self, node) if rule else None
        for each in new or (node,):
            self.nodes.append(each)
            if len(each.outputs) == 1:
                self.metas[each.name] = each.outputs[0]

    def substitute(self, tree: Any) -> Any:
        """Replace values that were rewritten away."""
        if isinstance(tree, Ref):
            return self.replaced.get(tree, tree)
        if isinstance(tree, tuple | list):
            return type(tree)(self.substitute(item) for item in tree)
        if isinstance(tree, dict):
            return {key: self.substitute(item) for key, item in tree.items()}
        return tree

    def _is_identity(self, node: Node) -> bool:
        if not node.refs or (Ref(node.name) in self.graph.returned and node.refs[0].name in self.graph.inputs):
            return False
        if node.op in IDENTITIES or node.op == "dropout":
            return node.op != "dropout" or not node.args[2]
        meta = self.metas.get(node.refs[0].name)
        return node.op in CASTS and meta is not None and node.refs[0].index == 0 and meta.dtype == node.outputs[0].dtype


def _glu(_: _Rewriter, node: Node) -> Sequence[Node]:
    out = node.outputs[0]
    dim = node.args[1] if len(node.args) > 1 else -1
    halves = Node(f"{node.name}_halves", "aten.chunk.default", (node.args[0], 2, dim), {}, (replace(out, contiguous=False),) * 2)
    gate = Node(f"{node.name}_gate", "aten.sigmoid.default", (Ref(halves.name, 1),), {}, (out,))
    return halves, gate, Node(node.name, "aten.mul.Tensor", (Ref(halves.name), Ref(gate.name)), {}, (out,))


def _row_loss(rewriter: _Rewriter, node: Node) -> Sequence[Node] | None:
    """Split a mean or sum of cross entropy or NLL into the loss by row and its reduction; rows with the ignored class count for nothing."""
    logits, target, weight, reduction, ignored, smoothing = _loss_arguments(node)
    if weight is not None or smoothing or reduction == REDUCTION_NONE or not isinstance(logits, Ref):
        return None
    target_meta = rewriter.metas.get(target.name)
    if target_meta is None or not target_meta.dtype.startswith("int") or not isinstance(ignored, int):
        return None
    dtype, scalar = node.outputs[0].dtype, node.outputs[0]
    tail = (0.0,) if node.op == "cross_entropy_loss" else ()
    rows_meta = TensorMeta(target_meta.shape, dtype)
    rows = Node(f"{node.name}_rows", node.target, (logits, target, None, REDUCTION_NONE, ignored, *tail), {}, (rows_meta,))
    if reduction != REDUCTION_MEAN:
        return rows, Node(node.name, "aten.sum.default", (Ref(rows.name),), {}, (scalar,))
    total = Node(f"{node.name}_total", "aten.sum.default", (Ref(rows.name),), {}, (scalar,))
    valid = Node(f"{node.name}_valid", "aten.ne.Scalar", (target, ignored), {}, (TensorMeta(target_meta.shape, "bool"),))
    count_shape: tuple[Sizes, ...] = ()
    count = Node(f"{node.name}_count", "aten.sum.default", (Ref(valid.name),), {}, (TensorMeta(count_shape, "int64"),))
    return rows, total, valid, count, Node(node.name, "aten.div.Tensor", (Ref(total.name), Ref(count.name)), {}, (scalar,))


def _loss_arguments(node: Node) -> tuple[Any, Any, Any, Any, Any, Any]:
    names = ("self", "target", "weight", "reduction", "ignore_index", "label_smoothing")
    defaults = (None, None, None, REDUCTION_MEAN, -100, 0.0)
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    logits, target, weight, reduction, ignored, smoothing = (given.get(n, d) for n, d in zip(names, defaults, strict=True))
    return logits, target, weight, reduction, ignored, smoothing


RULES: dict[str, Callable[[_Rewriter, Node], Sequence[Node] | None]] = {
    "glu": _glu,
    "cross_entropy_loss": _row_loss,
    "nll_loss_nd": _row_loss,
}
