"""Which rewritings of a reference are worth modelling: norms folded into weights, sums taken before their products, values packed."""

from __future__ import annotations

from tools.codegen import OperatorGraph, Schedule
from tools.codegen.rewrite.apply import rewritten
from tools.codegen.rewrite.fold_batch_norm import folded_norms
from tools.codegen.rewrite.fold_constants import packable
from tools.codegen.rewrite.reduction_pushdown import early_sums


def rewritings(graph: OperatorGraph) -> tuple[Schedule, ...]:
    """List schedules without regions, each of which says how the graph is rewritten: as it is, then all sums early, then those packed too.

    Norms that can be folded are folded in each: that takes work from the device and gives it none. The last one packs whatever is made of
    parameters alone, if sums leave something of weight there.
    """
    start = Schedule(regions=(), folded_norms=tuple(found.norm.name for found in folded_norms(graph)))
    early = tuple(found.reduction.name for found in early_sums(rewritten(graph, start)))
    if not early:
        return (start,)
    first = start.model_copy(update={"early_sums": early})
    packed = packable(rewritten(graph, first))
    return (start, first, first.model_copy(update={"packed": packed})) if packed else (start, first)


def rewriting_words(schedule: Schedule) -> tuple[str, ...]:
    """Name the rewritings of a schedule."""
    named = (("sums first", schedule.early_sums), ("norms folded", schedule.folded_norms), ("values packed", schedule.packed))
    return tuple(word for word, names in named if names)
