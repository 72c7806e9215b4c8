"""Which groups of modules to replace where it is known what each would take: every call is covered once, by what saves most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tools.models.choosing.chosen import Chosen, gain_of, inside, saved
from tools.models.records import Group

ALIKE = 0.9
"""Part of what the modules inside save from which on their group is chosen all the same: the model tells no smaller difference, one guard
answers where several would, and layouts between the modules are free."""


Calls = frozenset[tuple[str, str]]
"""Of one group: the path of a module and the workload that calls it."""


def covering(rows: Sequence[Chosen], groups: Mapping[str, Group], weights: Mapping[str, float] = MappingProxyType({})) -> list[Chosen]:
    """Choose from the inside out: a group takes the place of the calls inside of its own where it saves as much as those do.

    A group may keep calls that lie in none of another group's, of other modules or in other workloads: there the outer operator's guard
    lets the original run, with what is inside of it. Its gain is what these bring, by how often they come with the workloads' `weights`.
    """
    covered: dict[str, Calls] = {}
    by_name = {row.group: row for row in rows}
    for row in sorted(rows, key=lambda row: -max(path.count(".") + bool(path) for path in groups[row.group].nested)):
        own = groups[row.group]
        within = {name: _within(calls, own) for name, calls in covered.items()}
        if saved(row) > ALIKE * sum(saved(by_name[name]) * _share(groups[name], calls, weights) for name, calls in within.items()):
            covered = {name: left for name, calls in covered.items() if (left := calls - within[name])}
            covered[row.group] = frozenset((path, workload) for path in own.nested for workload in own.calls)
    return [_part(by_name[name], _share(groups[name], calls, weights)) for name, calls in covered.items()]


def _within(calls: Calls, around: Group) -> Calls:
    """Find which calls happen in calls of another group."""
    return frozenset(
        (path, workload) for path, workload in calls if workload in around.calls and any(inside(path, other) for other in around.nested)
    )


def _share(group: Group, calls: Calls, weights: Mapping[str, float]) -> float:
    """Tell which part of a group's calls these are, as often as each comes."""
    if len(calls) == len(group.paths) * len(group.calls):
        return 1.0
    often = {workload: weights.get(workload, 1.0) * count for workload, count in group.calls.items()}
    return sum(often[workload] for _, workload in calls) / (len(group.paths) * sum(often.values()) or 1.0)


def _part(row: Chosen, part: float) -> Chosen:
    return row if part == 1.0 else row.model_copy(update={"gain": gain_of(saved(row) * part)})
