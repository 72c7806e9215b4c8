"""Which rewritings of a reference are worth modelling: sums taken before their products, norms folded into weights, values packed."""

from __future__ import annotations

from tools.codegen import OperatorGraph, Schedule
from tools.codegen.early_sums import early_sums, with_early_sums
from tools.codegen.folded_norms import folded_norms, with_folded_norms
from tools.codegen.packed_values import packable


def rewritings(graph: OperatorGraph) -> tuple[Schedule, ...]:
    """List schedules without regions, each of which says how the graph is rewritten: as it is, then all sums early, then all packed too.

    The last one packs whatever is made of parameters alone, if a sum or a norm leaves something of weight there.
    """
    folded = tuple(found.norm.name for found in folded_norms(graph))
    base = with_folded_norms(graph, folded)
    early = tuple(found.reduction.name for found in early_sums(base))
    plain = tuple(found.reduction.name for found in early_sums(graph))
    found = [Schedule(regions=())]
    if plain:
        found.append(Schedule(regions=(), early_sums=plain))
    packed = packable(with_early_sums(base, early))
    if folded or (early and packed):
        found.append(Schedule(regions=(), early_sums=early, folded_norms=folded, packed=packed))
    return tuple(found)


def packs(schedule: Schedule) -> bool:
    """Whether a rewriting has a step that makes values once for all calls."""
    return bool(schedule.folded_norms or schedule.packed)


def rewriting_words(schedule: Schedule) -> tuple[str, ...]:
    """Name the rewritings of a schedule."""
    named = (("sums first", schedule.early_sums), ("norms folded", schedule.folded_norms), ("values packed", schedule.packed))
    return tuple(word for word, names in named if names)
