"""What changes nothing: dropout that drops nothing, copies, casts to the same dtype, sums of one element, no pads; a softmax by hand.

A softmax takes its row's maximum away, so one that was taken away before it changes nothing either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.operators.families import CASTS
from tools.codegen.ir.sizes import is_one
from tools.codegen.rewrite.rewriter import Rewriter, looked_at

IDENTITIES = {"clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh"}
OF_ONE = {"sum", "mean", "amax", "amin", "max", "min", "logsumexp"}
"""Reductions that give an element back where they run over one."""
DROPOUTS = {"dropout", "feature_dropout", "alpha_dropout"}
ADAPTIVE = {f"adaptive_avg_pool{rank}d" for rank in (1, 2, 3)}
LAST = 2**63 - 1
"""The end of a slice that has none."""


def is_identity(rewriter: Rewriter, node: Node) -> bool:
    """Whether a node gives back what it reads, for all inputs."""
    if not node.refs or _is_returned_apart(rewriter, node) or _is_kept(rewriter, node):
        return False
    if node.op in IDENTITIES or _is_whole(node) or (node.op == "constant_pad_nd" and not any(node.args[1])):
        return True
    if node.op in DROPOUTS:
        # neither training nor a chance of zero leaves anything to drop
        return not node.args[2] or node.args[1] == 0
    meta = rewriter.metas.get(node.refs[0].name)
    if node.op in OF_ONE and node.refs[0].index == 0 and len(node.outputs[0].shape) == len(meta.shape if meta else ()):
        positions = Ref(node.name, 1)
        used = any(positions in user.refs for user in rewriter.graph.users.get(node.name, ())) or positions in rewriter.graph.returned
        return not used and _runs_over_one(node, meta)
    if node.op in ADAPTIVE:
        # windows of one element each
        return meta is not None and node.refs[0].index == 0 and meta.shape == node.outputs[0].shape
    return node.op in CASTS and meta is not None and node.refs[0].index == 0 and meta.dtype == node.outputs[0].dtype


def _is_returned_apart(rewriter: Rewriter, node: Node) -> bool:
    """Whether a copy of an argument or of a part of one is returned, or a view of the copy: who writes to it leaves the argument alone."""
    graph = rewriter.graph
    of_an_argument = any(name in graph.inputs for name in looked_at(graph, node.refs[0]))
    return of_an_argument and any(node.name in looked_at(graph, ref) for ref in graph.returned)


def _is_kept(rewriter: Rewriter, node: Node) -> bool:
    """Whether a node copies what is written to in place: its readers may want what was there before."""
    return node.op == "clone" and not rewriter.overwritten.isdisjoint(looked_at(rewriter.graph, node.refs[0]))


def _is_whole(node: Node) -> bool:
    """Whether a slice goes from the first element to the last, as that of `x[:, None]` is traced."""
    ends = node.argument(2, "start", 0), node.argument(3, "end", None), node.argument(4, "step", 1)
    return node.op == "slice" and ends[0] in (None, 0) and ends[1] in (None, LAST) and ends[2] == 1


def _runs_over_one(node: Node, meta: TensorMeta | None) -> bool:
    """Whether a reduction runs over dimensions of one element, and gives back what it reads."""
    named = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if node.op not in OF_ONE or meta is None or meta.dtype != node.outputs[0].dtype or not set(node.kwargs) <= {"dim", "keepdim"}:
        return False
    dims = [named] if isinstance(named, int) else named
    if not isinstance(dims, list | tuple) or not dims or not all(isinstance(dim, int) for dim in dims):
        return False
    # a number has no dimensions, and takes one all the same
    return not meta.shape or all(is_one(meta.shape[dim]) for dim in dims)


def one_element(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take a reduction over dimensions of one element as the view that it is."""
    source = node.args[0]
    meta = rewriter.metas.get(source.name) if isinstance(source, Ref) and source.index == 0 else None
    if meta is None or source.name in rewriter.graph.inputs or len(node.outputs) > 1 or not _runs_over_one(node, meta):
        return None
    named = node.args[1] if len(node.args) > 1 else node.kwargs["dim"]
    dims = sorted(dim % len(meta.shape) for dim in ([named] if isinstance(named, int) else named))
    return (Node(node.name, "aten.squeeze.dims", (source, dims), {}, (replace(meta, shape=node.outputs[0].shape),)),)


def without_shift(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take a softmax of `x - max(x)` as that of `x`: it takes the maximum away by itself, and an infinite one is NaN either way."""
    found = _centred(rewriter, node.args[0])
    if found is None or not isinstance(node.args[1], int) or node.args[1] % len(node.outputs[0].shape) != found[1]:
        return None
    return (replace(node, args=(found[0], *node.args[1:])),)


def written_out_softmax(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take `exp(x - max(x))` over its sum as a softmax."""
    top, bottom = node.args[:2]
    if node.kwargs or not isinstance(top, Ref) or not isinstance(bottom, Ref) or len(node.args) > 2:
        return None
    weights, total = _maker(rewriter, top), _maker(rewriter, bottom)
    if weights is None or weights.op != "exp" or total is None or total.op != "sum" or total.args[0] != top:
        return None
    found, dim = _centred(rewriter, weights.args[0]), _kept_dim(total)
    if found is None or dim is None or dim != found[1] or rewriter.meta_of(found[0]) != node.outputs[0]:
        return None
    return (Node(node.name, "aten.softmax.int", (found[0], dim), {}, node.outputs),)


def _maker(rewriter: Rewriter, ref: Ref) -> Node | None:
    """The operator of which a value is the first result."""
    return next((each for each in rewriter.nodes if each.name == ref.name), None) if ref.index == 0 else None


def _centred(rewriter: Rewriter, ref: Ref) -> tuple[Ref, int] | None:
    """Find `x` and the dimension where a value is `x - max(x)` along it."""
    shifted = _maker(rewriter, ref)
    if shifted is None or shifted.op != "sub" or shifted.kwargs or len(shifted.args) != 2:
        return None
    source, peak = shifted.args
    maximum = _maker(rewriter, peak) if isinstance(source, Ref) and isinstance(peak, Ref) else None
    if maximum is None or maximum.op not in ("amax", "max") or maximum.args[0] != source or rewriter.meta_of(source) != shifted.outputs[0]:
        return None
    dim = _kept_dim(maximum)
    return None if dim is None else (source, dim)


def _kept_dim(node: Node) -> int | None:
    """The one dimension that a reduction runs over and keeps, from the first on."""
    named = node.argument(1, "dim")
    dims = [named] if isinstance(named, int) else named
    if not node.argument(2, "keepdim", default=False) or not isinstance(dims, list | tuple) or len(dims) != 1:
        return None
    return int(dims[0]) % len(node.outputs[0].shape)


def both_moments(rewriter: Rewriter, node: Node) -> Sequence[Node]:
    """Write a variance and the mean beside it as two operators."""
    spread = Node(f"{node.name}_spread", node.target.replace("_mean", ""), node.args, node.kwargs, node.outputs[:1])
    dims, keeps = node.argument(1, "dim"), bool(node.kwargs.get("keepdim", node.args[3] if len(node.args) > 3 else False))
    mean = Node(f"{node.name}_mean", "aten.mean.dim", (node.args[0], dims, keeps), {}, node.outputs[1:])
    if not isinstance(dims, list | tuple):
        mean = Node(mean.name, "aten.mean.default", (node.args[0],), {}, node.outputs[1:])
    rewriter.replaced |= {Ref(node.name, 0): Ref(spread.name), Ref(node.name, 1): Ref(mean.name)}
    return spread, mean
