"""Which regions can be one launch: those in a row that wait for none of one another, and that have as many warps.

Many small tensors, an optimiser's list or queries and keys, are each a grid of their own that ends before the next one fills the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.memory_order import waits
from tools.codegen.schedule.partition import producers
from tools.codegen.templates.shared.prepack import EVERY_CALL, WEIGHTS

LAUNCHES, TOGETHER = "launches", "together"
"""The parameter of an action on the whole forward, and the value by which regions share launches."""
EACH = "each"
ABLE = frozenset({"pointwise", "rows", "tile"})
"""Templates whose programs know nothing of one another, but for `WAITING`."""
WAITING = "l2_two_pass"
"""The algorithm of rows whose programs wait for others of their grid."""
MOST = 16
"""Regions of one launch: each is code of its own in the kernel."""


def together(graph: OperatorGraph, schedule: Schedule, *, any_warps: bool = False) -> tuple[tuple[str, ...], ...]:
    """List the regions, by id, that share their launches: each list has two or more, one behind the other in the schedule.

    With `any_warps` those that would if they had as many warps.
    """
    return tuple(tuple(region.id for region in group) for group in _groups(graph, schedule, any_warps) if len(group) > 1)


def side_by_side(graph: OperatorGraph, schedule: Schedule) -> Schedule:
    """Put regions that wait for none of one another, and may share launches, behind one another; what they read comes before all of them.

    Where the graph writes to its inputs or buffers the order stays.
    """
    if graph.effects:
        return schedule
    regions = schedule.regions
    home = {name: place for place, region in enumerate(regions) for name in region.nodes}
    needs = [
        {home[source] for name in region.nodes for source in producers(graph, graph.by_name[name]) if source in home} - {place}
        for place, region in enumerate(regions)
    ]
    left, done = list(range(len(regions))), set[int]()
    order: list[int] = []
    while left:
        free = [place for place in left if needs[place] <= done]
        first, *others = free
        group = [first, *(place for place in others if _is_able(regions[first]) and _is_able(regions[place]))][:MOST]
        order += group
        done.update(group)
        left = [place for place in left if place not in done]
    return schedule.model_copy(update={"regions": tuple(regions[place] for place in order)})


def spared(graph: OperatorGraph, schedule: Schedule) -> int:
    """Count the regions that another region's launches launch, too."""
    return sum(len(group) - 1 for group in together(graph, schedule)) if schedule.together else 0


def _groups(graph: OperatorGraph, schedule: Schedule, any_warps: bool) -> Iterator[list[Region]]:
    group: list[Region] = []
    made: set[str] = set()
    for region in schedule.regions:
        alike = any_warps or (bool(group) and _warps(region) == _warps(group[0]))
        if (
            not group
            or len(group) == MOST
            or not _is_able(region)
            or not alike
            or made & (_read(graph, region.nodes) | _waited_for(graph, region))
        ):
            yield group
            group, made = [], set()
        if not _is_able(region):
            continue
        group.append(region)
        made.update(region.nodes)
    yield group


def _is_able(region: Region) -> bool:
    plain = region.parameters.get(WEIGHTS, EVERY_CALL) == EVERY_CALL
    return region.template in ABLE and plain and region.parameters.get("algorithm") != WAITING


def _warps(region: Region) -> object:
    return region.parameters.get("num_warps")


def _waited_for(graph: OperatorGraph, region: Region) -> set[str]:
    """Name what a region waits for since they share a buffer's memory."""
    shared = waits(graph)
    return {other for name in region.nodes for other in shared.get(name, ())}


def _read(graph: OperatorGraph, names: Iterable[str]) -> set[str]:
    """Name what nodes read, and what the views are of through which they read it."""
    found, stack = set[str](), [ref.name for name in names for ref in graph.by_name[name].refs]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            node = graph.by_name.get(name)
            stack += [ref.name for ref in node.refs] if node and is_view(node) else []
    return found
