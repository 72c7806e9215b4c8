"""Which rewritings of a reference are worth modelling: norms folded, reductions pushed down, values prepacked or made again."""

from __future__ import annotations

from tools.codegen import OperatorGraph, Schedule
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.fold_batch_norm import folded_batch_norms
from tools.codegen.rewrite.fold_constants import CAST, foldable_constants
from tools.codegen.rewrite.images.pooling_pushdown import AVERAGES
from tools.codegen.rewrite.images.separate_statistics import separable_statistics
from tools.codegen.rewrite.operands.pad_sums import unaligned_sums
from tools.codegen.rewrite.operands.sort_additions import unsorted_additions
from tools.codegen.rewrite.pushdown.products import reduction_pushdowns
from tools.codegen.schedule.recompute import recomputable

FEW_NORMS = 8
"""Norms of a graph up to which their statistics are taken apart as one more rewriting: each doubles the schedules to be modelled."""


def rewritings(graph: OperatorGraph) -> tuple[Schedule, ...]:
    """List schedules without regions, each of which says how the graph is rewritten: as it is, all sums pushed down, those packed too.

    Norms that can be folded are folded in each, and poolings taken before convolutions that only mix channels: that takes work from the
    device and gives it none. The last one packs whatever is made of parameters alone, if sums leave something of weight there. Each also
    with casts of parameters packed, with unaligned sums filled up, with additions by index sorted, and with values made again where they
    are read.
    """
    start = Schedule(regions=(), folded_batch_norms=tuple(found.norm.name for found in folded_batch_norms(graph)))
    found = reduction_pushdowns(bind(graph, start).rewritten)
    start = start.model_copy(update={"reduction_pushdown": tuple(one.reduction.name for one in found if one.reduction.op in AVERAGES)})
    cast = (other for each in _pushed(graph, start) for other in (each, *_cast_once(graph, each)))
    apart = (other for each in cast for other in (each, *_apart(graph, each)))
    filled = (other for each in apart for other in (each, *_filled(graph, each)))
    ordered = (other for each in filled for other in (each, *_sorted(graph, each)))
    return tuple(other for each in ordered for other in (each, *_recomputed(graph, each)))


def _cast_once(graph: OperatorGraph, rewriting: Schedule) -> tuple[Schedule, ...]:
    """The same with parameters that the reference rounds packed so, if there are any: they are read at half the width then."""
    changed = bind(graph, rewriting).rewritten
    casts = tuple(name for name in foldable_constants(changed) if changed.by_name[name].op == CAST)
    return (rewriting.model_copy(update={"prepacked": (*rewriting.prepacked, *casts)}),) if casts else ()


def _apart(graph: OperatorGraph, rewriting: Schedule) -> tuple[Schedule, ...]:
    """The same with the statistics of few norms as steps of their own, if there are any."""
    norms = separable_statistics(bind(graph, rewriting).rewritten)
    return (rewriting.model_copy(update={"separate_statistics": norms}),) if 0 < len(norms) <= FEW_NORMS else ()


def _filled(graph: OperatorGraph, rewriting: Schedule) -> tuple[Schedule, ...]:
    """The same with unaligned sums filled up, if there are any."""
    sums = unaligned_sums(bind(graph, rewriting).rewritten)
    return (rewriting.model_copy(update={"padded_sums": sums}),) if sums else ()


def _sorted(graph: OperatorGraph, rewriting: Schedule) -> tuple[Schedule, ...]:
    """The same with additions by index in the order of their targets, if there are any."""
    names = unsorted_additions(bind(graph, rewriting).rewritten)
    return (rewriting.model_copy(update={"sorted_additions": names}),) if names else ()


def _recomputed(graph: OperatorGraph, rewriting: Schedule) -> tuple[Schedule, ...]:
    """The same with values made again where they are read, if there are any."""
    copies = recomputable(bind(graph, rewriting).rewritten)
    return (rewriting.model_copy(update={"recomputed": copies}),) if copies else ()


def _pushed(graph: OperatorGraph, start: Schedule) -> tuple[Schedule, ...]:
    pushed = tuple(found.reduction.name for found in reduction_pushdowns(bind(graph, start).rewritten))
    if not pushed:
        return (start,)
    first = start.model_copy(update={"reduction_pushdown": (*start.reduction_pushdown, *pushed)})
    packed = foldable_constants(bind(graph, first).rewritten)
    return (start, first, first.model_copy(update={"prepacked": packed})) if packed else (start, first)


def rewriting_words(schedule: Schedule) -> tuple[str, ...]:
    """Name the rewritings of a schedule."""
    named = (
        ("reduction push-down", schedule.reduction_pushdown),
        ("folded batch norms", schedule.folded_batch_norms),
        ("statistics apart", schedule.separate_statistics),
        ("joined in place", schedule.joined_in_place),
        ("filled sums", schedule.padded_sums),
        ("sorted additions", schedule.sorted_additions),
        ("recomputed values", schedule.recomputed),
        ("prepacked values", schedule.prepacked),
    )
    return tuple(word for word, names in named if names)
