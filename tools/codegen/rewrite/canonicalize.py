"""Rewrite a merged graph into fewer kinds of operators, each rewrite an identity that holds for all inputs.

What nothing reads is left out. Identities (dropout in eval mode or with a probability of zero, clone, contiguous, casts to the
same dtype) vanish; `glu` becomes two slices, a sigmoid and a product; a classification loss with a mean or a sum becomes its loss by
row and a reduction; einsum of several tensors becomes products of two; batch norm in training mode becomes its functional twin and two
writes to its buffers; attention with wide heads becomes its products and its softmax; a scan between two flips becomes a reversed
scan, and one laid after zeros or ones a scan of what begins with them; a concatenation that starts with the pieces of an earlier one
takes its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta, find_refs
from tools.codegen.ir.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.ir.sizes import Sizes, Varying, is_one
from tools.codegen.rewrite.attention import written_out
from tools.codegen.rewrite.einsum import pairwise
from tools.codegen.rewrite.scan import exclusive_scan, reversed_scan

IDENTITIES = {"clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh"}
OF_ONE = {"sum", "mean", "amax", "amin", "max", "min", "logsumexp"}
"""Reductions that give an element back where they run over one."""
DROPOUTS = {"dropout", "feature_dropout", "alpha_dropout"}
ADAPTIVE = {f"adaptive_avg_pool{rank}d" for rank in (1, 2, 3)}
CASTS = {"to", "_to_copy", "type_as", "float", "half", "bfloat16", "double"}
REDUCTION_NONE, REDUCTION_MEAN = 0, 1
ALIASES = {"multiply": "mul", "divide": "div", "subtract": "sub", "true_divide": "div", "negative": "neg", "absolute": "abs"}
"""Second names of operators."""


def normalise(graph: OperatorGraph) -> OperatorGraph:
    """Apply every rewrite once, in order of the nodes."""
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        rewriter.add(node)
    effects = graph.effects | rewriter.effects
    outputs = rewriter.substitute(graph.outputs)
    return replace(graph, nodes=_alive(rewriter.nodes, outputs, effects), outputs=outputs, effects=effects)


def _alive(nodes: Sequence[Node], outputs: Any, effects: frozenset[str]) -> tuple[Node, ...]:
    """Leave out nodes whose results nobody reads and that write to nothing."""
    wanted = {ref.name for ref in find_refs(outputs)}
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.name in wanted or node.name in effects or not node.outputs:
            kept.append(node)
            wanted |= {ref.name for ref in node.refs}
    return tuple(reversed(kept))


class Rewriter:
    """Collects the new nodes and which old values they stand for."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.replaced: dict[Ref, Ref] = {}
        self.metas = dict(graph.inputs)
        self.effects: set[str] = set()
        self.written: dict[Ref, Ref] = {}
        """Which buffer each value will be written to; later readers of the buffer are given the value."""
        self.joined: dict[tuple[tuple[Ref, ...], int], Ref] = {}
        """What was concatenated so far: pieces and dimension to the result."""

    def add(self, node: Node) -> None:
        """Rewrite one node."""
        if node.name in self.graph.effects:
            self._keep(node)
            return
        node = replace(node, args=self.substitute(node.args), kwargs=self.substitute(node.kwargs))
        if node.op in ALIASES:
            node = replace(node, target=node.target.replace(f".{node.op}.", f".{ALIASES[node.op]}."))
        if self._is_identity(node):
            self.replaced[Ref(node.name)] = node.refs[0]
            return
        rule = RULES.get(node.op, _one_element if node.op in OF_ONE else None)
        new = rule(self, node) if rule else None
        for each in new or (self._spread(node),):
            self._append(each)

    def _keep(self, node: Node) -> None:
        """Leave a write of the reference's own as it is: who reads the buffer after it reads the buffer."""
        target, *others = node.args
        self._append(replace(node, args=(target, *self.substitute(others)), kwargs=self.substitute(node.kwargs)))
        self.replaced.pop(target, None)

    def write(self, buffer: Ref, value: Ref, name: str, meta: TensorMeta) -> Node:
        """Write a value to a buffer; a write to it that nobody has to see any more is taken back."""
        before = self.written.get(buffer)
        if before is not None:
            taken = {each.name for each in self.nodes if each.name in self.effects and each.args[0] == before}
            self.nodes = [each for each in self.nodes if each.name not in taken]
            self.effects -= taken
        target = before or buffer
        self.written[value], self.replaced[target] = target, value
        self.effects.add(name)
        return Node(name, "aten.copy_.default", (target, value), {}, (meta,))

    def _append(self, node: Node) -> None:
        self.nodes.append(node)
        if len(node.outputs) == 1:
            self.metas[node.name] = node.outputs[0]

    def meta_of(self, ref: Ref) -> TensorMeta:
        """Shape and dtype of a buffer, or of what is written to it."""
        return self.metas[self.written.get(ref, ref).name]

    def _spread(self, node: Node) -> Node:
        """Broadcast, before a pointwise operator, what broadcasts at some sizes only: kernels then read it by its strides."""
        if (node.op not in ARITHMETIC and node.op not in LOGIC) or sum(isinstance(arg, Ref) for arg in node.args) < 2:
            return node
        out, changed = node.outputs[0], list(node.args)
        for place, arg in enumerate(node.args):
            meta = self.metas.get(arg.name) if isinstance(arg, Ref) and arg.index == 0 else None
            if meta is None or not _broadcasts_at_times(meta.shape, out.shape):
                continue
            sizes = [size[0] if len(set(size)) == 1 else Varying(size) for size in out.shape]
            view = Node(f"{arg.name}_spread_{node.name}", "aten.broadcast_to.default", (arg, sizes), {}, (_strided(meta, out.shape),))
            self._append(view)
            changed[place] = Ref(view.name)
        return replace(node, args=tuple(changed))

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
        if node.op in IDENTITIES:
            return True
        if node.op in DROPOUTS:
            # neither training nor a chance of zero leaves anything to drop
            return not node.args[2] or node.args[1] == 0
        meta = self.metas.get(node.refs[0].name)
        if node.op in OF_ONE and node.refs[0].index == 0 and len(node.outputs[0].shape) == len(meta.shape if meta else ()):
            positions = Ref(node.name, 1)
            used = any(positions in user.refs for user in self.graph.users.get(node.name, ())) or positions in self.graph.returned
            return not used and _runs_over_one(node, meta)
        if node.op in ADAPTIVE:
            # windows of one element each
            return meta is not None and node.refs[0].index == 0 and meta.shape == node.outputs[0].shape
        return node.op in CASTS and meta is not None and node.refs[0].index == 0 and meta.dtype == node.outputs[0].dtype


def _broadcasts_at_times(shape: Sequence[Sizes], out: Sequence[Sizes]) -> bool:
    """Whether a shape broadcasts to `out` along a dimension that has its full size in some traces and one element in others."""
    pairs = list(zip(shape[::-1], out[::-1], strict=False))
    fits = all(size in (1, whole) for sizes, wholes in pairs for size, whole in zip(sizes, wholes, strict=True))
    return fits and any(sizes != wholes and not is_one(sizes) for sizes, wholes in pairs)


def _strided(meta: TensorMeta, shape: tuple[Sizes, ...]) -> TensorMeta:
    return replace(meta, shape=shape, contiguous=False, unit_last=False)


def _runs_over_one(node: Node, meta: TensorMeta | None) -> bool:
    """Whether a reduction runs over dimensions of one element, and gives back what it reads."""
    named = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if node.op not in OF_ONE or meta is None or meta.dtype != node.outputs[0].dtype or not set(node.kwargs) <= {"dim", "keepdim"}:
        return False
    dims = [named] if isinstance(named, int) else named
    if not isinstance(dims, list | tuple) or not dims or not all(isinstance(dim, int) for dim in dims):
        return False
    return all(is_one(meta.shape[dim]) for dim in dims)


def _one_element(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take a reduction over dimensions of one element as the view that it is."""
    source = node.args[0]
    meta = rewriter.metas.get(source.name) if isinstance(source, Ref) and source.index == 0 else None
    if meta is None or source.name in rewriter.graph.inputs or len(node.outputs) > 1 or not _runs_over_one(node, meta):
        return None
    named = node.args[1] if len(node.args) > 1 else node.kwargs["dim"]
    dims = sorted(dim % len(meta.shape) for dim in ([named] if isinstance(named, int) else named))
    return (Node(node.name, "aten.squeeze.dims", (source, dims), {}, (replace(meta, shape=node.outputs[0].shape),)),)


def _glu(_: Rewriter, node: Node) -> Sequence[Node]:
    out = node.outputs[0]
    dim = node.args[1] if len(node.args) > 1 else -1
    halves = Node(f"{node.name}_halves", "aten.chunk.default", (node.args[0], 2, dim), {}, (replace(out, contiguous=False),) * 2)
    gate = Node(f"{node.name}_gate", "aten.sigmoid.default", (Ref(halves.name, 1),), {}, (out,))
    return halves, gate, Node(node.name, "aten.mul.Tensor", (Ref(halves.name), Ref(gate.name)), {}, (out,))


def _row_loss(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
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


def _triplet(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Split a mean or sum of triplet losses into the loss by row and its reduction."""
    usual = ((3, "margin", 1.0), (4, "p", 2.0), (5, "eps", 1e-6), (6, "swap", False), (7, "reduction", REDUCTION_MEAN))
    *numbers, reduction = (node.argument(place, name, default) for place, name, default in usual)
    shapes = {rewriter.metas[ref.name].shape for ref in node.args[:3] if ref.name in rewriter.metas}
    if reduction == REDUCTION_NONE or len(shapes) != 1 or node.outputs[0].dtype != "float32":
        return None
    (shape,) = shapes
    rows = Node(f"{node.name}_rows", node.target, (*node.args[:3], *numbers, REDUCTION_NONE), {}, (TensorMeta(shape[:-1], "float32"),))
    kind = "mean" if reduction == REDUCTION_MEAN else "sum"
    return rows, Node(node.name, f"aten.{kind}.default", (Ref(rows.name),), {}, node.outputs)


def _batch_norm(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Name what batch norm in training mode writes to its running statistics, so that a kernel may compute it."""
    source, weight, bias, mean, variance, training, momentum, eps = node.args[:8]
    if not training or not isinstance(mean, Ref) or not isinstance(variance, Ref):
        return None
    out, of_mean, of_variance = node.outputs[0], rewriter.meta_of(mean), rewriter.meta_of(variance)
    arguments = (source, weight, bias, mean, variance, True, momentum, eps)
    outputs = (out, of_mean, of_variance, of_mean, of_variance)
    norm = Node(node.name, "aten._native_batch_norm_legit_functional.default", arguments, {}, outputs)
    updates = [
        rewriter.write(buffer, Ref(node.name, index), f"{node.name}_{word}", norm.outputs[index])
        for word, buffer, index in (("mean_update", mean, 3), ("variance_update", variance, 4))
    ]
    return norm, *updates


def _cat(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Scan what is laid after a fill instead of laying a scan there, or take a concatenation's start from an earlier one."""
    return exclusive_scan(rewriter, node) or _grown(rewriter, node)


def _grown(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take a concatenation that starts with all pieces of an earlier one as that one's result and the rest."""
    pieces, dim = node.args[0], node.argument(1, "dim", 0)
    rank = len(node.outputs[0].shape)
    if not all(isinstance(piece, Ref) for piece in pieces) or not isinstance(dim, int) or not rank:
        return None
    whole, place = tuple(pieces), dim % rank
    if any(piece.name in rewriter.graph.buffers for piece in whole):
        # a buffer may be written to between the two
        return None
    for count in range(len(whole) - 1, 1, -1):
        earlier = rewriter.joined.get((whole[:count], place))
        # of one rank and dtype: an empty tensor of another rank, or one of another dtype, changes what is joined
        if earlier is not None and rewriter.metas[earlier.name].dtype == node.outputs[0].dtype:
            rewriter.joined[whole, place] = Ref(node.name)
            return (replace(node, args=([earlier, *whole[count:]], place), kwargs={}),)
    rewriter.joined.setdefault((whole, place), Ref(node.name))
    return None


def _loss_arguments(node: Node) -> tuple[Any, Any, Any, Any, Any, Any]:
    names = ("self", "target", "weight", "reduction", "ignore_index", "label_smoothing")
    defaults = (None, None, None, REDUCTION_MEAN, -100, 0.0)
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    logits, target, weight, reduction, ignored, smoothing = (given.get(n, d) for n, d in zip(names, defaults, strict=True))
    return logits, target, weight, reduction, ignored, smoothing


RULES: dict[str, Callable[[Rewriter, Node], Sequence[Node] | None]] = {
    "einsum": pairwise,
    "glu": _glu,
    "batch_norm": _batch_norm,
    "cat": _cat,
    "flip": reversed_scan,
    "pad": exclusive_scan,
    "cross_entropy_loss": _row_loss,
    "nll_loss_nd": _row_loss,
    "triplet_margin_loss": _triplet,
    "scaled_dot_product_attention": written_out,
}
