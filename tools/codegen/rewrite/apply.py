"""The graph that a schedule's regions are of: the reference's, rewritten by what the schedule says of norms, sums and packed values."""

from __future__ import annotations

from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Schedule
from tools.codegen.rewrite.fold_batch_norm import with_folded_norms
from tools.codegen.rewrite.fold_constants import with_packed
from tools.codegen.rewrite.reduction_pushdown import with_early_sums


def rewritten(graph: OperatorGraph, schedule: Schedule) -> OperatorGraph:
    """Fold norms, take sums early, pack values, in this order; the same graph where that has been done, or there is nothing to do."""
    graph = with_folded_norms(graph, schedule.folded_norms)
    graph = with_early_sums(graph, schedule.early_sums)
    return with_packed(graph, schedule.packed) if schedule.packed else graph
