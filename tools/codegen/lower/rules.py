"""Every rule by which an operator is lowered, and the lowering of a region by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.kernel import Kernel
from tools.codegen.lower.attention import ATTENTION_RULES, absorb_second_product, absorb_sink, absorb_softmax
from tools.codegen.lower.concat import JOIN_RULES
from tools.codegen.lower.convolution import CONVOLUTION_RULES
from tools.codegen.lower.einsum import EINSUM_RULES
from tools.codegen.lower.log_sums import absorb_log_sum
from tools.codegen.lower.loss import LOSS_RULES
from tools.codegen.lower.matmul import PRODUCT_RULES, STRUCTURE_RULES
from tools.codegen.lower.matrix_steps import MATRIX_LOOP_RULES, steps_matrices
from tools.codegen.lower.norm import NORM_RULES
from tools.codegen.lower.operands import absorb_operand_pieces
from tools.codegen.lower.pages import absorb_joined, absorb_pages
from tools.codegen.lower.patches import PATCH_RULES
from tools.codegen.lower.pointwise import POINTWISE_RULES
from tools.codegen.lower.pooling import POOLING_RULES
from tools.codegen.lower.positions.gathers import GATHER_RULES, SOURCES
from tools.codegen.lower.positions.interpolation import INTERPOLATION_RULES
from tools.codegen.lower.positions.joins import GENERAL_JOIN_RULES
from tools.codegen.lower.positions.order import ORDER_RULES
from tools.codegen.lower.positions.reorder import REORDER_RULES
from tools.codegen.lower.positions.scatter import SCATTER_RULES
from tools.codegen.lower.positions.sorted_rows import SORTED_RULES
from tools.codegen.lower.positions.view_rules import VIEW_RULES
from tools.codegen.lower.recurrence import DISPATCH_RULES, RECURRENCE_RULES
from tools.codegen.lower.recurrent import RECURRENT_RULES
from tools.codegen.lower.reduction import REDUCTION_RULES, RUNNING_RULES
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule
from tools.codegen.lower.region.lowering import NOTHING, Claim, Lowering, Rule
from tools.codegen.lower.row_sums import absorb_row_sum
from tools.codegen.lower.single_rows import SINGLE_ROW_RULES
from tools.codegen.lower.small_product import SMALL_PRODUCT_RULES
from tools.codegen.lower.taps import TAP_RULES

CLAIMS: tuple[Claim, ...] = (
    absorb_pages, absorb_operand_pieces, absorb_joined, absorb_sink, absorb_softmax, absorb_log_sum, absorb_row_sum,
    absorb_second_product,
)  # fmt: skip
"""What is asked before an operator's own rule: pages, pieces, keys, a logit, a softmax, a sum or a product may belong to an attention."""
RULES: dict[str, Rule] = {
    **POINTWISE_RULES, **REDUCTION_RULES, **NORM_RULES, **LOSS_RULES, **JOIN_RULES, **STRUCTURE_RULES, **CONVOLUTION_RULES,
    **PRODUCT_RULES, **EINSUM_RULES, **POOLING_RULES, **ATTENTION_RULES, **RECURRENCE_RULES, **DISPATCH_RULES,
    **RECURRENT_RULES,
}  # fmt: skip
"""By operator name. `max` and `min` are in two families: the reduction's rule tells by their arguments."""

MOVING_RULES: dict[str, GeneralRule] = {
    **GATHER_RULES, **GENERAL_JOIN_RULES, **REORDER_RULES, **PATCH_RULES, **SCATTER_RULES, **ORDER_RULES,
    **SMALL_PRODUCT_RULES, **RUNNING_RULES,
}  # fmt: skip
"""Of operators that move elements, and compute nothing."""
GENERAL_RULES: dict[str, GeneralRule] = {
    **POINTWISE_RULES, **REDUCTION_RULES, **NORM_RULES, **LOSS_RULES, **MOVING_RULES, **INTERPOLATION_RULES,
    **TAP_RULES, **SINGLE_ROW_RULES, **SORTED_RULES,
}  # fmt: skip
"""Of regions that tiles hold."""


def lower_general(graph: OperatorGraph, members: Iterable[str]) -> Kernel:
    """Lower the named nodes into one kernel that reads and writes where it likes; raises LoweringError with the reason."""
    names = tuple(members)
    for name in names:
        if graph.by_name[name].op not in GENERAL_RULES:
            raise LoweringError(f"{graph.by_name[name].target} has no template")
    kernel = GeneralLowering(graph, names, GENERAL_RULES, VIEW_RULES, SOURCES).run()
    if not any(graph.by_name[name].op == "by_segment" for name in names):
        return kernel
    return replace(kernel, then=GeneralLowering(graph, names, GENERAL_RULES, VIEW_RULES, SOURCES, late=True).run())


def lower(graph: OperatorGraph, members: Iterable[str], *, formulas: bool = False) -> Kernel:
    """Lower the named nodes of a graph into one kernel; raises LoweringError with the reason.

    With `formulas` it computes what is made of positions and numbers alone; else it reads that. A loop whose operands meet themselves, or
    whose step is one of linear algebra, is one of small matrices.
    """
    names, sources = tuple(members), SOURCES if formulas else NOTHING
    try:
        return Lowering(graph, names, RULES, CLAIMS, sources).run()
    except LoweringError:
        if not steps_matrices(graph, names):
            raise
    return Lowering(graph, names, {**RULES, **MATRIX_LOOP_RULES}, CLAIMS, sources).run()
