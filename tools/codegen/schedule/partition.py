"""The partition of a graph into fusion regions: operators that one kernel can hold, in an order in which each finds what it reads."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Copied, Node, OfPieces, OperatorGraph, Ref, Statistics
from tools.codegen.ir.operators.families import ATTENTIONS, CONVOLUTIONS, EITHER_LAYOUT, POOLINGS, PRODUCTS
from tools.codegen.ir.operators.joined_operands import joined_operands
from tools.codegen.ir.schedule import EPILOGUE, FORMAT, Region, Schedule
from tools.codegen.ir.sizes import Sizes
from tools.codegen.ir.views import is_view
from tools.codegen.lower.pooling import overlap
from tools.codegen.lower.positions.interpolation import INTERPOLATION_RULES
from tools.codegen.lower.recurrence import DISPATCH_RULES
from tools.codegen.lower.recurrent import RECURRENT_RULES
from tools.codegen.schedule.plan import belong_together, can_generate, moves_elements
from tools.codegen.templates.registry import knobs_of

STANDING_ALONE = {*PRODUCTS, *ATTENTIONS, *CONVOLUTIONS, *DISPATCH_RULES, *RECURRENT_RULES}
"""Operators that natural regions do not join to others: whether to fuse around them is an action, the library is often faster."""
Shape = tuple[Sizes, ...]
MOST_AGAIN = 4
"""How often a pooling may make an element again that comes from pointwise operators before it: up to a window of 3x3 with a stride of 2."""


def has_convolution(graph: OperatorGraph, region: Region) -> bool:
    """Whether a region is a library call, or a dense convolution of ours, with a layout to choose."""
    return (
        FORMAT in knobs_of(region.template)
        and EPILOGUE not in region.parameters
        and any(graph.by_name[name].op in EITHER_LAYOUT for name in region.nodes)
    )


def initial_schedule(graph: OperatorGraph) -> Schedule:
    """Partition the graph into natural regions, each left to the reference's own operators."""
    return Schedule(regions=()) if graph.blocked else natural_regions(graph)


def natural_regions(graph: OperatorGraph) -> Schedule:
    """Partition the graph greedily: each operator joins the regions that feed it where one kernel can hold them all.

    Matrix products stand alone; whether to fuse their epilogue is an action, because the library's product is often faster.
    """
    groups: list[list[str]] = []
    home: dict[str, int] = {}
    sources: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        if is_view(node):
            continue
        sources[node.name] = producers(graph, node)
        place = _join(graph, node, groups, home, sources)
        if place is None:
            groups.append([node.name])
            place = len(groups) - 1
        for name in groups[place]:
            home[name] = place
    _side_by_side(graph, groups, home, sources)
    return Schedule(regions=ordered(graph, [tuple(group) for group in groups if group]))


def _side_by_side(graph: OperatorGraph, groups: list[list[str]], home: dict[str, int], sources: dict[str, tuple[str, ...]]) -> None:
    """Unite groups that read the same large tensor and make tensors of the same shapes, so that it is read once."""
    readers: dict[tuple[Ref, frozenset[Shape]], list[int]] = {}
    for place, group in enumerate(groups):
        shapes, read = _reading(graph, group)
        if not read or _stands_alone(graph, group):
            continue
        before = sorted({other for ref in read for other in readers.get((ref, shapes), ())})
        target = next((other for other in before if _united_fit(graph, groups, home, sources, (other, place))), place)
        if target != place:
            groups[target] = sorted([*groups[target], *group], key=lambda name: graph.order[name])
            groups[place] = []
            home |= dict.fromkeys(group, target)
        for ref in read:
            readers.setdefault((ref, shapes), []).append(target)


def _united_fit(
    graph: OperatorGraph, groups: list[list[str]], home: dict[str, int], sources: dict[str, tuple[str, ...]], places: tuple[int, int]
) -> bool:
    members = [name for place in places for name in groups[place]]
    return not _in_a_circle(groups, home, sources, set(members)) and belong_together(graph, members)


def _reading(graph: OperatorGraph, group: Sequence[str]) -> tuple[frozenset[Shape], tuple[Ref, ...]]:
    """Name the shapes of all tensors that a group makes, and the tensors of as many elements or more that it reads."""
    shapes = frozenset(meta.shape for name in group for meta in graph.by_name[name].outputs)
    size = max((math.prod(sizes[0] for sizes in shape) for shape in shapes), default=0)
    read = dict.fromkeys(ref for name in group for ref in graph.by_name[name].refs if ref.name not in group)
    return shapes, tuple(ref for ref in read if graph.meta(ref).numel >= size)


def _join(
    graph: OperatorGraph, node: Node, groups: list[list[str]], home: dict[str, int], sources: dict[str, tuple[str, ...]]
) -> int | None:
    if node.op in STANDING_ALONE or node.name in graph.effects or node.name in joined_operands(graph):
        return None
    if node.op in POOLINGS and overlap(node) > MOST_AGAIN:
        return None
    feeders = sorted({home[name] for name in sources[node.name]}, reverse=True)
    joinable = [place for place in feeders if not _stands_alone(graph, groups[place])]
    joinable = [place for place in joinable if _joins_statistics(graph, node, groups[place])]
    if isinstance(node, Copied):
        joinable = [place for place in joinable if all(isinstance(graph.by_name[name], Copied) for name in groups[place])]
    if moves_elements(graph, node.name):
        # what lies between its pieces and what they are made of may only make one kernel with it
        wide = _upstream(graph, groups, home, sources, joinable)
        if len(wide) > len(joinable) and _fits(graph, node, groups, home, sources, wide):
            return _united(graph, node, groups, wide)
    while joinable:
        if _fits(graph, node, groups, home, sources, joinable):
            return _united(graph, node, groups, joinable)
        joinable = joinable[:-1] if len(joinable) > 1 else []
    return None


def _joins_statistics(graph: OperatorGraph, node: Node, group: Sequence[str]) -> bool:
    """Whether a group holds no norm's statistics, or a node makes more of what is known of the pieces of one."""
    if isinstance(node, OfPieces):
        return all(isinstance(graph.by_name[name], OfPieces) for name in group)
    return not any(isinstance(graph.by_name[name], Statistics | OfPieces) for name in group)


def _fits(
    graph: OperatorGraph,
    node: Node,
    groups: list[list[str]],
    home: dict[str, int],
    sources: dict[str, tuple[str, ...]],
    places: Sequence[int],
) -> bool:
    merged = [name for place in sorted(places) for name in groups[place]]
    return not _in_a_circle(groups, home, sources, {*merged, node.name}) and belong_together(graph, [*merged, node.name])


def _united(graph: OperatorGraph, node: Node, groups: list[list[str]], places: Sequence[int]) -> int:
    """Make one group of several and a node; return its place."""
    target, merged = min(places), [name for place in sorted(places) for name in groups[place]]
    for place in places:
        groups[place] = []
    groups[target] = sorted([*merged, node.name], key=lambda name: graph.order[name])
    return target


def _upstream(
    graph: OperatorGraph, groups: list[list[str]], home: dict[str, int], sources: dict[str, tuple[str, ...]], places: Sequence[int]
) -> list[int]:
    """List groups with those that feed them, and so on, as far as these do not stand alone."""
    found, rest = set(places), list(places)
    while rest:
        for name in groups[rest.pop()]:
            new = {home[source] for source in sources[name]} - found
            able = {place for place in new if not _stands_alone(graph, groups[place])}
            found |= able
            rest += able
    return sorted(found)


def _in_a_circle(groups: list[list[str]], home: dict[str, int], sources: dict[str, tuple[str, ...]], members: set[str]) -> bool:
    """Whether nodes, taken as one region, would need a region that needs them."""
    rest = [source for name in members for source in sources[name] if source not in members]
    seen: set[int] = set()
    while rest:
        place = home[rest.pop()]
        if place in seen:
            continue
        seen.add(place)
        for name in groups[place]:
            for source in sources[name]:
                if source in members:
                    return True
                rest.append(source)
    return False


def _stands_alone(graph: OperatorGraph, group: Sequence[str]) -> bool:
    """Whether nothing joins a group; one operator that mixes neighbours may lack but the size of its result, which what follows reads."""
    if len(group) == 1 and graph.by_name[group[0]].op in INTERPOLATION_RULES:
        return False
    return any(graph.by_name[name].op in STANDING_ALONE for name in group) or not can_generate(graph, group)


def producers(graph: OperatorGraph, node: Node) -> tuple[str, ...]:
    """Name the nodes that feed one of the graph's, seen through views, each once and in the order of its operands; kept with the graph."""
    known: dict[str, tuple[str, ...]] = graph.__dict__.setdefault("_producers", {})
    if node.name not in known:
        known[node.name] = tuple(dict.fromkeys(name for ref in node.refs for name in producers_of(graph, ref)))
    return known[node.name]


def producers_of(graph: OperatorGraph, ref: object) -> tuple[str, ...]:
    """Name the nodes that make one value, seen through views."""
    source = graph.by_name.get(ref.name) if isinstance(ref, Ref) else None
    if source is None:
        return ()
    return producers(graph, source) if is_view(source) else (source.name,)


def ordered(graph: OperatorGraph, groups: Sequence[tuple[str, ...]]) -> tuple[Region, ...]:
    """Order groups so that each comes after those it reads, and number them; parameters are left empty."""
    home = {name: place for place, group in enumerate(groups) for name in group}
    needs = [
        {home[source] for name in group for source in producers(graph, graph.by_name[name])} - {place} for place, group in enumerate(groups)
    ]
    readers: list[list[int]] = [[] for _ in groups]
    for place, sources in enumerate(needs):
        for source in sources:
            readers[source].append(place)
    # of those that wait for nothing, the first that writes to a buffer, or else the first
    turns = [
        (not any(name in graph.effects for name in group), min(graph.order[name] for name in group), place)
        for place, group in enumerate(groups)
    ]
    waiting = [len(sources) for sources in needs]
    free = [turns[place] for place, count in enumerate(waiting) if not count]
    heapq.heapify(free)
    done: list[int] = []
    while free:
        done.append(heapq.heappop(free)[-1])
        for place in readers[done[-1]]:
            waiting[place] -= 1
            if not waiting[place]:
                heapq.heappush(free, turns[place])
    if len(done) < len(groups):
        raise LoweringError("regions read each other in a circle")
    return tuple(Region(id=f"r{number}", nodes=groups[place]) for number, place in enumerate(done))
