"""Cuts of a region in two: at what a kernel makes again for each place it is read from, or at what is far larger or smaller."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.operators.families import PRODUCTS
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.einsum_copies import PARTS
from tools.codegen.schedule.partition import ordered, producers
from tools.codegen.schedule.plan import TILE, can_generate, moves_elements, plan_region

SHIFTS = PARTS | {"select", "unfold", "unbind", "flip", "diagonal"}
"""Views whose elements lie at other positions than those of what they look at."""
FAR_LARGER = 64
"""Times as many elements from which on a result is far larger than another; an assumption."""


def made_again(graph: OperatorGraph, region: Region) -> tuple[str, ...]:
    """Name the values of a region that it reads from several places, those first whose making again takes the most operators."""
    inside = frozenset(region.nodes)
    work = {
        name: len(_made_for(graph, name, inside)) * (places - 1)
        for name in region.nodes
        if _makes(graph, name) and (places := _places(graph, name, inside)) > 1
    }
    return tuple(sorted((name for name in work if work[name]), key=lambda name: (-work[name], graph.order[name])))


def _makes(graph: OperatorGraph, name: str) -> bool:
    """Whether a node makes what is not there as it is: it computes, or puts several values together."""
    return not moves_elements(graph, name) or len(producers(graph, graph.by_name[name])) > 1


def far_larger(graph: OperatorGraph, region: Region) -> tuple[str, ...]:
    """Name the results of a region that are far larger than another of its results: whoever makes them makes the small one each time."""
    inside = frozenset(region.nodes)
    returned = {ref.name for ref in graph.returned}
    left = [
        name
        for name in region.nodes
        if name in returned or any(user.name not in inside and not is_view(user) for user in graph.users.get(name, ()))
    ]
    sizes = {name: max(meta.numel for meta in graph.by_name[name].outputs) for name in left}
    least = min(sizes.values(), default=0)
    found = [name for name, size in sizes.items() if size >= FAR_LARGER * least]
    return tuple(sorted(found, key=lambda name: (-sizes[name], graph.order[name])))


def spread(graph: OperatorGraph, region: Region) -> tuple[str, ...]:
    """Name what tiles, or a product besides it, spread over far more elements than it has: those of most operators first."""
    inside = frozenset(region.nodes)
    products = {name for name in region.nodes if graph.by_name[name].op in PRODUCTS}
    work: dict[str, int] = {}
    for name in region.nodes if products or region.template == TILE else ():
        made, size = _made_for(graph, name, inside), max(meta.numel for meta in graph.by_name[name].outputs)
        widest = max(
            (meta.numel for other in region.nodes if _reads(graph, other, name) for meta in graph.by_name[other].outputs), default=0
        )
        if not made & products and widest >= FAR_LARGER * size:
            work[name] = len(made)
    return tuple(sorted(work, key=lambda name: (-work[name], graph.order[name])))


def _reads(graph: OperatorGraph, node: str, name: str) -> bool:
    return name in producers(graph, graph.by_name[node])


def read_loops(graph: OperatorGraph, region: Region) -> tuple[str, ...]:
    """Name the loops of a region that it reads itself: every program walks all steps, for however small a part of what reads them."""
    loops = (name for name in region.nodes if isinstance(graph.by_name[name], Loop))
    return tuple(name for name in loops if any(name in producers(graph, graph.by_name[other]) for other in region.nodes))


def cut(graph: OperatorGraph, schedule: Schedule, region: Region, name: str, sms: int) -> Schedule | None:
    """Let a region end with one of its values and others go on; nothing where one of them cannot be generated."""
    before = _made_for(graph, name, frozenset(region.nodes))
    first, rest = (tuple(one for one in region.nodes if (one in before) == early) for early in (True, False))
    parts = (first, rest) if rest and can_generate(graph, rest) else (first, *_connected(graph, rest))
    if not all(part and can_generate(graph, part) for part in parts):
        return None
    kept = {each.nodes: each for each in schedule.regions if each.id != region.id}
    try:
        regions = ordered(graph, [*kept, *parts])
    except LoweringError:
        return None
    placed = (
        kept[each.nodes].model_copy(update={"id": each.id}) if each.nodes in kept else _generated(graph, each, sms) for each in regions
    )
    return schedule.model_copy(update={"regions": tuple(placed)})


def _connected(graph: OperatorGraph, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Part nodes into those that make what others of them read, in order."""
    groups: list[set[str]] = []
    for name in names:
        sources = {name, *producers(graph, graph.by_name[name])}
        met = [group for group in groups if group & sources]
        groups = [group for group in groups if not group & sources] + [{name}.union(*met)]
    return tuple(tuple(name for name in names if name in group) for group in groups)


def _generated(graph: OperatorGraph, region: Region, sms: int) -> Region:
    planned = plan_region(graph, region.nodes)
    return region.model_copy(update={"template": planned.template.name, "parameters": planned.defaults(sms)})


def _made_for(graph: OperatorGraph, name: str, inside: frozenset[str]) -> frozenset[str]:
    """Name a value with all that is made for it inside a region."""
    found, rest = {name}, [name]
    while rest:
        new = {source for source in producers(graph, graph.by_name[rest.pop()]) if source in inside} - found
        found |= new
        rest += new
    return frozenset(found)


def _places(graph: OperatorGraph, name: str, inside: frozenset[str]) -> int:
    """Count the places from which a region reads a value of its own: each way through what moves elements, and all others together."""
    straight, ways = {name}, Counter[str]()
    moved, in_place = 0, False
    met: set[int] = set()
    waiting: list[int] = []

    def meet(one: str) -> None:
        # readers come after what they read: they alone need be looked at, in order
        new = {graph.order[user.name] for user in graph.users.get(one, ())} - met
        met.update(new)
        for place in new:
            heapq.heappush(waiting, place)

    meet(name)
    while waiting:
        node = graph.nodes[heapq.heappop(waiting)]
        read = [ref.name for ref in node.refs]
        seen = is_view(node)
        moves = node.op in SHIFTS if seen else node.name in inside and moves_elements(graph, node.name)
        times = sum(ways[one] for one in read) + (moves and any(one in straight for one in read))
        if seen or moves:
            ways[node.name] = times
            straight |= {node.name} if seen and not moves and straight & set(read) else set()
            meet(node.name)
        elif node.name in inside:
            moved += times
            in_place |= any(one in straight for one in read)
    return moved + in_place
