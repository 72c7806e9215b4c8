"""A graph bound to a schedule: rewritten by the schedule's algebra, and laid out in memory as its regions ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Schedule
from tools.codegen.rewrite.channels_last import lay_out
from tools.codegen.rewrite.fold_batch_norm import with_folded_batch_norms
from tools.codegen.rewrite.fold_constants import with_prepacked
from tools.codegen.rewrite.images.halves_between import with_halves_between
from tools.codegen.rewrite.images.joined_in_place import with_joined_in_place
from tools.codegen.rewrite.images.separate_statistics import with_separate_statistics
from tools.codegen.rewrite.operands.pad_sums import with_padded_sums
from tools.codegen.rewrite.operands.sort_additions import with_sorted_additions
from tools.codegen.rewrite.pushdown.products import with_reduction_pushdown
from tools.codegen.rewrite.recompute import with_recomputed
from tools.codegen.rewrite.separate_bias import with_separate_biases


@dataclass(frozen=True)
class BoundGraph:
    """What a schedule's regions are of; `bind` makes it."""

    reference: OperatorGraph
    """As it was traced."""
    schedule: Schedule
    rewritten: OperatorGraph
    """Norms folded, sums pushed down and filled up, biases and statistics taken out, additions sorted, values copied, constants folded."""

    @cached_property
    def laid_out(self) -> OperatorGraph:
        """The same nodes in the memory layouts that regions ask for, halves between them included: what kernels are lowered from."""
        return with_halves_between(lay_out(self.rewritten, self.schedule), self.schedule)


def bind(graph: OperatorGraph, schedule: Schedule) -> BoundGraph:
    """Rewrite a traced graph as a schedule says.

    Each rewriting leaves alone what is done already, so a graph that was bound before may be bound again. What it becomes is kept with the
    graph, which is frozen: a choice binds many schedules of few rewritings.
    """
    asked = _asked(schedule)
    if not any(asked):
        return BoundGraph(graph, schedule, graph)
    known: dict[tuple[object, ...], OperatorGraph | None] = graph.__dict__.setdefault("_rewritten", {})
    if asked not in known:
        rewritten = _rewritten(graph, schedule)
        known[asked] = None if rewritten is graph else rewritten
    return BoundGraph(graph, schedule, known[asked] or graph)


_asked = attrgetter(*(name for name in Schedule.model_fields if name not in ("regions", "together", "captured")))
"""What a schedule says of the graph that its regions are of."""


def _rewritten(graph: OperatorGraph, schedule: Schedule) -> OperatorGraph:
    """Rewrite a graph in the order that names of nodes in schedules rely on."""
    rewritten = with_folded_batch_norms(graph, schedule.folded_batch_norms)
    rewritten = with_reduction_pushdown(rewritten, schedule.reduction_pushdown)
    rewritten = with_separate_biases(rewritten, schedule.separate_biases) if schedule.separate_biases else rewritten
    rewritten = with_separate_statistics(rewritten, schedule.separate_statistics) if schedule.separate_statistics else rewritten
    rewritten = with_joined_in_place(rewritten, schedule.joined_in_place) if schedule.joined_in_place else rewritten
    rewritten = with_padded_sums(rewritten, schedule.padded_sums) if schedule.padded_sums else rewritten
    rewritten = with_sorted_additions(rewritten, schedule.sorted_additions) if schedule.sorted_additions else rewritten
    rewritten = with_recomputed(rewritten, schedule.recomputed)
    return with_prepacked(rewritten, schedule.prepacked) if schedule.prepacked else rewritten
