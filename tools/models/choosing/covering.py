"""Which groups of modules to replace where it is known what each would take: every module is covered once, by what saves most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.models.choosing.chosen import Chosen, gain_of, inside, saved
from tools.models.records import Group

ALIKE = 0.9
"""Part of what the modules inside save from which on their group is chosen all the same: the model tells no smaller difference, one guard
answers where several would, and layouts between the modules are free."""


def covering(rows: Sequence[Chosen], groups: Mapping[str, Group]) -> list[Chosen]:
    """Choose from the inside out: a group takes the place of the modules inside of its own where it saves as much as those do.

    A group may keep those of its modules that lie in none of another group; its gain is what these bring.
    """
    covered: dict[str, frozenset[str]] = {}
    by_name = {row.group: row for row in rows}
    for row in sorted(rows, key=lambda row: -max(path.count(".") + bool(path) for path in groups[row.group].paths)):
        own = groups[row.group]
        within = {name: _within(groups[name], paths, own) for name, paths in covered.items()}
        if saved(row) > ALIKE * sum(saved(by_name[name]) * len(paths) / len(groups[name].paths) for name, paths in within.items()):
            covered = {name: left for name, paths in covered.items() if (left := paths - within[name])}
            covered[row.group] = frozenset(own.paths)
    return [_part(by_name[name], len(paths) / len(groups[name].paths)) for name, paths in covered.items()]


def _within(group: Group, paths: frozenset[str], around: Group) -> frozenset[str]:
    """Find which of a group's modules lie in modules of another, where one workload calls both."""
    if group.calls.keys().isdisjoint(around.calls):
        return frozenset()
    return frozenset(path for path in paths if any(inside(path, other) for other in around.paths))


def _part(row: Chosen, part: float) -> Chosen:
    return row if part == 1.0 else row.model_copy(update={"gain": gain_of(saved(row) * part)})
