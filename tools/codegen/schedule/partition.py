"""The partition of a graph into fusion regions: operators that one kernel can hold, in an order in which each finds what it reads."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from copy import copy

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Copied, Node, OfPieces, OperatorGraph, Ref, Statistics
from tools.codegen.ir.operators.families import ATTENTIONS, CONVOLUTIONS, EITHER_LAYOUT, POOLINGS, PRODUCTS
from tools.codegen.ir.operators.gathered_operands import gathered_operands
from tools.codegen.ir.operators.joined_operands import joined_operands
from tools.codegen.ir.schedule import EPILOGUE, FORMAT, Region, Schedule
from tools.codegen.ir.sizes import Sizes
from tools.codegen.ir.views import is_view
from tools.codegen.lower.pooling import overlap
from tools.codegen.lower.positions.interpolation import INTERPOLATION_RULES
from tools.codegen.lower.recurrence import DISPATCH_RULES
from tools.codegen.lower.recurrent import RECURRENT_RULES
from tools.codegen.schedule.memory_order import waits
from tools.codegen.schedule.plan import MOST_NODES, belong_together, can_generate, moves_elements
from tools.codegen.templates.registry import knobs_of

STANDING_ALONE = {*PRODUCTS, *ATTENTIONS, *CONVOLUTIONS, *DISPATCH_RULES, *RECURRENT_RULES}
"""Operators that natural regions do not join to others: whether to fuse around them is an action, the library is often faster."""
Shape = tuple[Sizes, ...]
MOST_AGAIN = 4
"""How often a pooling may make an element again that comes from pointwise operators before it: up to a window of 3x3 with a stride of 2."""
LARGE = 32
"""Operators of a group from which on several more are joined to it at once. To lower 190 takes a sixth of a second."""


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

    Matrix products stand alone; whether to fuse their epilogue is an action, because the library's product is often faster. Where
    regions are large several operators are joined at once: to lower each size on the way would take time by the square of the last.
    """
    nodes = [node for node in graph.nodes if not is_view(node)]
    done, ahead, partition = 0, 1, _Partition(graph)
    while done < len(nodes):
        tried = partition.grown(nodes[done : done + ahead], trusting=ahead > 1)
        if tried is None:
            ahead //= 2
        else:
            done, ahead, partition = done + ahead, ahead * 2 if tried.has_large else 1, tried
    partition.side_by_side()
    return Schedule(regions=ordered(graph, [tuple(group) for group in partition.groups if group]))


class _Partition:
    """Groups of a graph's nodes as they grow."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.groups: list[list[str]] = []
        self.home: dict[str, int] = {}
        self._sources: dict[str, tuple[str, ...]] = {}
        self._trusting = False
        self._trusted: set[int] = set()
        """Groups that were not asked whether one kernel holds them."""
        self.has_large = False
        """Whether one of the last nodes met a large group."""

    def grown(self, nodes: Sequence[Node], *, trusting: bool) -> _Partition | None:
        """Put further nodes into groups; while `trusting` a large one is only lowered at last, and None is said where that does not fit."""
        other = copy(self)
        other.groups, other.home, other._sources = [*self.groups], {**self.home}, {**self._sources}
        other._trusting, other._trusted, other.has_large = trusting, set(), False
        for node in nodes:
            other._add(node)
        fits = all(belong_together(self.graph, other.groups[place]) for place in sorted(other._trusted) if other.groups[place])
        return other if fits else None

    def _add(self, node: Node) -> None:
        self._sources[node.name] = producers(self.graph, node)
        place = self._join(node)
        if place is None:
            self.groups.append([node.name])
            place = len(self.groups) - 1
        for name in self.groups[place]:
            self.home[name] = place

    def side_by_side(self) -> None:
        """Unite groups that read the same large tensor and make tensors of the same shapes, so that it is read once."""
        graph, groups = self.graph, self.groups
        readers: dict[tuple[Ref, frozenset[Shape]], list[int]] = {}
        for place, group in enumerate(groups):
            shapes, read = _reading(graph, group)
            if not read or self._stands_alone(place):
                continue
            before = sorted({other for ref in read for other in readers.get((ref, shapes), ())})
            target = next((other for other in before if self._united_fit((other, place))), place)
            if target != place:
                groups[target] = sorted([*groups[target], *group], key=lambda name: graph.order[name])
                groups[place] = []
                self.home |= dict.fromkeys(group, target)
            for ref in read:
                readers.setdefault((ref, shapes), []).append(target)

    def _united_fit(self, places: tuple[int, int]) -> bool:
        members = [name for place in places for name in self.groups[place]]
        return not self._in_a_circle(set(members)) and belong_together(self.graph, members)

    def _join(self, node: Node) -> int | None:
        if node.op in STANDING_ALONE or node.name in self.graph.effects or node.name in joined_operands(self.graph):
            return None
        if node.name in gathered_operands(self.graph):
            return None
        if node.op in POOLINGS and overlap(node) > MOST_AGAIN:
            return None
        feeders = sorted({self.home[name] for name in self._sources[node.name]}, reverse=True)
        joinable = [place for place in feeders if not self._stands_alone(place)]
        joinable = [place for place in joinable if _joins_statistics(self.graph, node, self.groups[place])]
        if isinstance(node, Copied):
            joinable = [place for place in joinable if all(isinstance(self.graph.by_name[name], Copied) for name in self.groups[place])]
        if moves_elements(self.graph, node.name):
            # what lies between its pieces and what they are made of may only make one kernel with it
            wide = self._upstream(joinable)
            if len(wide) > len(joinable) and self._fits(node, wide):
                return self._united(node, wide)
        while joinable:
            if self._fits(node, joinable):
                return self._united(node, joinable)
            joinable = joinable[:-1] if len(joinable) > 1 else []
        return None

    def _fits(self, node: Node, places: Sequence[int]) -> bool:
        members = [*(name for place in sorted(places) for name in self.groups[place]), node.name]
        if self._in_a_circle(set(members)):
            return False
        if len(members) < LARGE:
            return belong_together(self.graph, members)
        self.has_large = True
        if not self._trusting:
            return belong_together(self.graph, members)
        self._trusted.add(min(places))
        return len(members) <= MOST_NODES

    def _united(self, node: Node, places: Sequence[int]) -> int:
        """Make one group of several and a node; return its place."""
        target, merged = min(places), [name for place in sorted(places) for name in self.groups[place]]
        for place in places:
            self.groups[place] = []
        self.groups[target] = sorted([*merged, node.name], key=lambda name: self.graph.order[name])
        return target

    def _upstream(self, places: Sequence[int]) -> list[int]:
        """List groups with those that feed them, and so on, as far as these do not stand alone."""
        found, rest = set(places), list(places)
        while rest:
            for name in self.groups[rest.pop()]:
                new = {self.home[source] for source in self._sources[name]} - found
                able = {place for place in new if not self._stands_alone(place)}
                found |= able
                rest += able
        return sorted(found)

    def _in_a_circle(self, members: set[str]) -> bool:
        """Whether nodes, taken as one region, would need a region that needs them."""
        shared = waits(self.graph)
        rest = [source for name in members for source in (*self._sources[name], *shared.get(name, ())) if source not in members]
        seen: set[int] = set()
        while rest:
            place = self.home[rest.pop()]
            if place in seen:
                continue
            seen.add(place)
            for name in self.groups[place]:
                for source in (*self._sources[name], *shared.get(name, ())):
                    if source in members:
                        return True
                    rest.append(source)
        return False

    def _stands_alone(self, place: int) -> bool:
        """Whether nothing joins a group; one operator that mixes neighbours may lack but its result's size, which what follows reads."""
        graph, group = self.graph, self.groups[place]
        if len(group) == 1 and graph.by_name[group[0]].op in INTERPOLATION_RULES:
            return False
        if any(graph.by_name[name].op in STANDING_ALONE for name in group):
            return True
        return place not in self._trusted and not can_generate(graph, group)


def _reading(graph: OperatorGraph, group: Sequence[str]) -> tuple[frozenset[Shape], tuple[Ref, ...]]:
    """Name the shapes of all tensors that a group makes, and the tensors of as many elements or more that it reads."""
    shapes = frozenset(meta.shape for name in group for meta in graph.by_name[name].outputs)
    size = max((math.prod(sizes[0] for sizes in shape) for shape in shapes), default=0)
    read = dict.fromkeys(ref for name in group for ref in graph.by_name[name].refs if ref.name not in group)
    return shapes, tuple(ref for ref in read if graph.meta(ref).numel >= size)


def _joins_statistics(graph: OperatorGraph, node: Node, group: Sequence[str]) -> bool:
    """Whether a group holds no norm's statistics, or a node makes more of what is known of the pieces of one."""
    if isinstance(node, OfPieces):
        return all(isinstance(graph.by_name[name], OfPieces) for name in group)
    return not any(isinstance(graph.by_name[name], Statistics | OfPieces) for name in group)


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
    """Order groups so that each comes after those it reads, or shares a buffer with; number them. Parameters are left empty."""
    home, shared = {name: place for place, group in enumerate(groups) for name in group}, waits(graph)
    needs = [
        {home[source] for name in group for source in (*producers(graph, graph.by_name[name]), *shared.get(name, ()))} - {place}
        for place, group in enumerate(groups)
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
