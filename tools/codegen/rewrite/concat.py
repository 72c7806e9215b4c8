"""Concatenations that grow, as in DenseNet: one that starts with all pieces of an earlier one takes that one's result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref
from tools.codegen.rewrite.rewriter import Rewriter
from tools.codegen.rewrite.scan import exclusive_scan


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
