"""Regions of pieces that are written into their places: each convolution with what is done to its result, and where that goes."""

from __future__ import annotations

from tools.codegen.ir.graph import OperatorGraph, Placed
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.rewrite.images.joined_in_place import made_by
from tools.codegen.schedule.partition import initial_schedule, ordered


def regions_of_places(graph: OperatorGraph) -> Schedule:
    """Partition a graph into natural regions, but for such pieces, each of which is one region with what makes it."""
    pieces = [(*made_by(graph, node.place.piece), node.name) for node in graph.nodes if isinstance(node, Placed) and node.place is not None]
    taken = {name for piece in pieces for name in piece}
    rest = [tuple(name for name in region.nodes if name not in taken) for region in initial_schedule(graph).regions]
    return Schedule(regions=ordered(graph, [*pieces, *(nodes for nodes in rest if nodes)]))


def writes_place(graph: OperatorGraph, region: Region) -> bool:
    """Whether a region is of such a piece: the library would copy the whole for it."""
    return any(isinstance(graph.by_name[name], Placed) for name in region.nodes)
