"""The graph that a schedule's regions are of: the reference's, rewritten by what the schedule says of norms, sums and packed values."""

from __future__ import annotations

from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Schedule
from tools.codegen.rewrite.fold_batch_norm import with_folded_batch_norms
from tools.codegen.rewrite.fold_constants import with_prepacked
from tools.codegen.rewrite.reduction_pushdown import with_reduction_pushdown


def rewritten(graph: OperatorGraph, schedule: Schedule) -> OperatorGraph:
    """Fold norms, take sums early, pack values, in this order; the same graph where that has been done, or there is nothing to do."""
    graph = with_folded_batch_norms(graph, schedule.folded_batch_norms)
    graph = with_reduction_pushdown(graph, schedule.reduction_pushdown)
    return with_prepacked(graph, schedule.prepacked) if schedule.prepacked else graph
