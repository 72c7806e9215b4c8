"""Concatenations that grow, as in DenseNet, and parts of concatenations along another dimension, as a detector's boxes and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.rewrite.rewriter import Rewriter
from tools.codegen.rewrite.scan import exclusive_scan

PARTS = frozenset({"split", "split_with_sizes", "chunk", "slice", "narrow", "select"})
"""Views that take parts along one dimension, their second argument or the third."""
MOST_PIECES = 8
"""Pieces of a concatenation whose parts are concatenated: each part has as many operators."""


def rewrite_concat(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Scan what is laid after a fill instead of laying a scan there, or take a concatenation's start from an earlier one."""
    return exclusive_scan(rewriter, node) or _extend_earlier(rewriter, node)


def _extend_earlier(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
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


def parts_of_concat(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Concatenate parts of the pieces instead of taking parts of the whole, where nobody reads that: whoever reads a part joins it."""
    source = node.args[0]
    joined = next((each for each in rewriter.nodes if isinstance(source, Ref) and each.name == source.name and each.op == "cat"), None)
    if joined is None or not _has_parts_alone(rewriter, joined):
        return None
    pieces, whole = joined.args[0], joined.outputs[0]
    rank = len(whole.shape)
    dim, along = _dim(node) % rank, joined.argument(1, "dim", 0) % rank
    cuts = [_cut(rewriter, node, piece, f"{node.name}_of_{place}", dim) for place, piece in enumerate(pieces)]
    after = along - (node.op == "select" and dim < along)
    many = len(node.outputs) > 1
    new = [*cuts]
    for at, out in enumerate(node.outputs):
        name = f"{node.name}_part_{at}" if many else node.name
        new.append(
            Node(name, joined.target, ([Ref(cut.name, at) for cut in cuts], after), {}, (replace(out, contiguous=True, unit_last=True),))
        )
        if many:
            rewriter.replaced[Ref(node.name, at)] = Ref(name)
    return new


def _dim(node: Node) -> int:
    place = 1 if node.op in ("slice", "narrow", "select") else 2
    dim = node.argument(place, "dim", 0)
    assert isinstance(dim, int)
    return dim


def _has_parts_alone(rewriter: Rewriter, joined: Node) -> bool:
    """Whether all that is read of a concatenation of a few tensors of one rank are parts along another dimension, none of them returned."""
    pieces, whole, graph = joined.args[0], joined.outputs[0], rewriter.graph
    rank, dim = len(whole.shape), joined.argument(1, "dim", 0)
    if not whole.contiguous or not isinstance(dim, int) or len(pieces) > MOST_PIECES or not all(isinstance(piece, Ref) for piece in pieces):
        return False
    metas = [rewriter.metas.get(piece.name) if not piece.index else None for piece in pieces]
    alike = all(meta is not None and meta.dtype == whole.dtype and len(meta.shape) == rank for meta in metas)
    users = graph.users.get(joined.name, ())
    taken = alike and all(user.op in PARTS and user.args[0] == Ref(joined.name) and _dim(user) % rank != dim % rank for user in users)
    returned = {ref.name for ref in graph.returned}
    return taken and not returned & {joined.name, *(user.name for user in users)}


def _cut(rewriter: Rewriter, node: Node, piece: Ref, name: str, dim: int) -> Node:
    """Take from one piece what a node takes from all."""
    own = rewriter.metas[piece.name]
    kept = own.contiguous and dim == 0
    is_unit = own.unit_last and dim != len(own.shape) - 1
    shapes = [own.shape[:dim] + out.shape[dim : dim + 1] + own.shape[dim + 1 :] for out in node.outputs]
    if node.op == "select":
        shapes = [own.shape[:dim] + own.shape[dim + 1 :]]
    outs = tuple(TensorMeta(shape, own.dtype, contiguous=kept, unit_last=is_unit) for shape in shapes)
    return Node(name, node.target, (piece, *node.args[1:]), node.kwargs, outs)
