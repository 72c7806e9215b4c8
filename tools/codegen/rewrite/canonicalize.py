"""Rewrite a merged graph into fewer kinds of operators, each rewrite an identity that holds for all inputs.

What nothing reads is left out. Identities (dropout in eval mode or with a probability of zero, clone, contiguous, casts to the same dtype)
vanish; `glu` becomes two slices, a sigmoid and a product; a classification loss with a mean or a sum becomes its loss by row and a
reduction; einsum of several tensors becomes products of two; batch norm in training mode becomes its functional twin and two writes to its
buffers; repetitions, and patches that do not overlap, become views; complex values become their parts; attention with wide heads becomes
its products and its softmax, other attention reads a mask that lies as it is read; a scan between two flips becomes a reversed scan, and
one laid after zeros or ones a scan of what begins with them; a concatenation that starts with the pieces of an earlier one takes its
result, and parts of one along another dimension are concatenations of parts; a selection from long rows is made in two steps, and what it
leaves of the rows reads few chunks; bags of embeddings of one length become rows and a reduction; means and extremes by index become sums,
counts and maxima of whole numbers, sums of halves by index those of float32, and counts and histograms ones added by number; what a mask
lets in becomes rows by a running count; bilinear layers become einsums, and distances differences, or lengths and a product; what is
overwritten as a whole becomes what it holds then; products whose matrices a part of a batch shares become an einsum; the only channel
after windows is the tensor without it; a softmax takes its maximum away but once, and is one where it is written out; what comes turned to
a depthwise convolution along lines is put in order; a vector added to a linear layer is its bias; a transform of short times
is one of windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.operators.families import CONVOLUTIONS
from tools.codegen.rewrite.attention import prepared_attention
from tools.codegen.rewrite.bags import bag
from tools.codegen.rewrite.batch_norm import functional_batch_norm
from tools.codegen.rewrite.broadcast import write_out_broadcast
from tools.codegen.rewrite.complex_parts import real_parts
from tools.codegen.rewrite.concat import PARTS, parts_of_concat, rewrite_concat
from tools.codegen.rewrite.einsum import bilinear, decompose_einsum
from tools.codegen.rewrite.elementwise import (
    bias_of_linear,
    distance_gradients,
    distances,
    identity_matrix,
    looked_up,
    small_linear,
    small_product,
    with_formulas,
)
from tools.codegen.rewrite.identities import OF_ONE, both_moments, is_identity, one_element, without_shift, written_out_softmax
from tools.codegen.rewrite.long_topk import chunked_topk, kept, softmax_of_kept
from tools.codegen.rewrite.loop import rewritten_body
from tools.codegen.rewrite.loss import row_loss, triplet_loss
from tools.codegen.rewrite.masked_scatter import placed_by_mask
from tools.codegen.rewrite.repeat import filled, interleave, number, rolled, seed, tiled
from tools.codegen.rewrite.rewriter import Rewriter, Rewritten, Rules, rewrite
from tools.codegen.rewrite.scan import exclusive_scan, prefix_of_scan, reversed_scan
from tools.codegen.rewrite.scatter_reduce import counted, counted_part, halves_by_index, histogram, reduced_by_index
from tools.codegen.rewrite.shared_matrices import shared_matrices
from tools.codegen.rewrite.unfold import patches, short_times

ALIASES = {"multiply": "mul", "divide": "div", "subtract": "sub", "true_divide": "div", "negative": "neg", "absolute": "abs"}
"""Second names of operators."""
TURNS = frozenset({"transpose", "permute", "t", "mT", "swapaxes", "movedim"})
"""Views in which dimensions have changed places."""


def canonicalize(graph: OperatorGraph) -> Rewritten:
    """Apply every rewrite once, in order of the nodes; say which ones changed something."""
    done = rewrite(graph, RULES)
    return replace(done, graph=with_formulas(done.graph))


def _glu(_: Rewriter, node: Node) -> Sequence[Node]:
    out = node.outputs[0]
    dim = node.args[1] if len(node.args) > 1 else -1
    halves = Node(f"{node.name}_halves", "aten.chunk.default", (node.args[0], 2, dim), {}, (replace(out, contiguous=False),) * 2)
    gate = Node(f"{node.name}_gate", "aten.sigmoid.default", (Ref(halves.name, 1),), {}, (out,))
    return halves, gate, Node(node.name, "aten.mul.Tensor", (Ref(halves.name), Ref(gate.name)), {}, (out,))


def _bits(_: Rewriter, node: Node) -> Sequence[Node] | None:
    """Tell a view of the same bits in another dtype from one of another shape."""
    return (replace(node, target="kernelwright.bits.default"),) if node.overload == "dtype" else None


def _only_one(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take the only element along a dimension without asking for its place."""
    source, dim = node.args[0], node.args[1]
    if not isinstance(source, Ref) or not isinstance(dim, int):
        return None
    return (replace(node, target="aten.squeeze.dim", args=(source, dim)),) if set(rewriter.meta_of(source).shape[dim]) == {1} else None


def _only_channel(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Take the only channel of what windows made of a tensor without channels; steps of loops tell other elements by what they are."""
    maker = next((each for each in rewriter.nodes if each.name == node.refs[0].name), None)
    return _only_one(rewriter, node) if maker and (maker.op in CONVOLUTIONS or "_pool" in maker.op) else None


def _lines_in_order(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Put an operator between what the graph makes and turns, and the depthwise convolution that reads its lines.

    The kernel and the library would copy it first; as an operator it joins what makes the value, so of an input there is none.
    """
    source, weight = node.args[:2]
    if not isinstance(source, Ref) or not isinstance(weight, Ref) or set(rewriter.meta_of(weight).shape[1]) != {1}:
        return None
    meta, maker = rewriter.meta_of(source), next((each for each in rewriter.nodes if each.name == source.name), None)
    if maker is None or maker.op not in TURNS or meta.contiguous or maker.refs[0].name in rewriter.graph.inputs:
        return None
    ordered = Node(f"{node.name}_lines", "aten.contiguous.default", (source,), {}, (replace(meta, contiguous=True, unit_last=True),))
    return ordered, replace(node, args=(Ref(ordered.name), *node.args[1:]))


def _matmul(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    return small_product(rewriter, node) or shared_matrices(rewriter, node)


def _slice(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    return prefix_of_scan(rewriter, node) or parts_of_concat(rewriter, node)


def _select(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    return _only_channel(rewriter, node) or parts_of_concat(rewriter, node)


def _softmax(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    return softmax_of_kept(rewriter, node) or without_shift(rewriter, node)


def _body(graph: OperatorGraph) -> OperatorGraph:
    # a step's products are sums over a tile, whatever their size
    own = {name: rule for name, rule in RULES.by_operator.items() if rule not in (small_product, small_linear, _matmul)}
    return rewrite(graph, replace(RULES, by_operator={**own, "select": _only_one})).graph


def _otherwise(rewriter: Rewriter, node: Node) -> Sequence[Node]:
    return real_parts(rewriter, node) or write_out_broadcast(rewriter, node)


RULES = Rules(
    aliases=ALIASES,
    is_identity=is_identity,
    by_operator={
        **dict.fromkeys(OF_ONE, one_element),
        **dict.fromkeys(PARTS, parts_of_concat),
        "einsum": decompose_einsum,
        "bilinear": bilinear,
        "glu": _glu,
        "view": _bits,
        "batch_norm": functional_batch_norm,
        "cat": rewrite_concat,
        "flip": reversed_scan,
        "pad": exclusive_scan,
        "slice": _slice,
        "cross_entropy_loss": row_loss,
        "nll_loss_nd": row_loss,
        "triplet_margin_loss": triplet_loss,
        "repeat_interleave": interleave,
        "repeat": tiled,
        "roll": rolled,
        "im2col": patches,
        "scaled_dot_product_attention": prepared_attention,
        "recurrence": rewritten_body(_body),
        "topk": chunked_topk,
        "select": _select,
        "conv1d": _lines_in_order,
        "masked_fill": kept,
        "where": kept,
        "softmax": _softmax,
        "log_softmax": without_shift,
        "div": written_out_softmax,
        "scatter_reduce": reduced_by_index,
        **dict.fromkeys(("scatter_add", "index_add"), halves_by_index),
        "bincount": counted,
        "data_sized": counted_part,
        "histc": histogram,
        "masked_scatter": placed_by_mask,
        "embedding_bag": bag,
        "eye": identity_matrix,
        "index": looked_up,
        **dict.fromkeys(("mm", "bmm"), small_product),
        "matmul": _matmul,
        "linear": small_linear,
        "stft": short_times,
        "add": bias_of_linear,
        **dict.fromkeys(("cdist", "_cdist_forward"), distances),
        "_cdist_backward": distance_gradients,
        **dict.fromkeys(("fill", "zero", "copy"), filled),
        **dict.fromkeys(("to", "_to_copy"), number),
        **dict.fromkeys(("zeros_like", "ones_like", "full_like"), seed),
        **dict.fromkeys(("var_mean", "std_mean"), both_moments),
    },
    otherwise=_otherwise,
)
"""What makes a graph canonical."""
