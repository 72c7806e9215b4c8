"""What is overwritten as a whole: a tensor that holds one number everywhere, or one value spread over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import DType, Node, Ref
from tools.codegen.rewrite.rewriter import Rewriter


def filled(rewriter: Rewriter, node: Node) -> Sequence[Node]:
    """Write `x.fill_(value)`, `x.zero_()` and `x.copy_(value)`: nothing of the tensor but its shape and its dtype is left.

    A number in an assignment, `x[:, 0] = 1`, is traced as a tensor without dimensions.
    """
    out = node.outputs[0]
    value = 0 if node.op == "zero" else node.args[1]
    if isinstance(value, Ref):
        made = next((each for each in rewriter.nodes if each.name == value.name), None)
        if made is not None and made.op == "scalar_tensor":
            value = made.args[0]
    if not isinstance(value, Ref):
        return (Node(node.name, "aten.full_like.default", (node.args[0], value), {}, (out,)),)
    meta = rewriter.metas[value.name]
    if meta.shape == out.shape:
        return (Node(node.name, "aten.to.dtype", (value, DType(out.dtype)), {}, (out,)),)
    found = []
    if meta.dtype != out.dtype:
        found.append(
            Node(f"{node.name}_cast", "aten._to_copy.default", (value,), {"dtype": DType(out.dtype)}, (replace(meta, dtype=out.dtype),))
        )
        value = Ref(f"{node.name}_cast")
    like = Node(f"{node.name}_like", "aten.zeros_like.default", (node.args[0],), {}, (out,))
    spread = Node(node.name, "aten.expand_as.default", (value, Ref(like.name)), {}, (replace(out, contiguous=False),))
    return *found, like, spread
