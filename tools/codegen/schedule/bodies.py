"""Loops of Python whose steps launch kernels: the regions of one step, as regions of the loop's body."""

from __future__ import annotations

from collections.abc import Iterator

from tools.codegen.ir.graph import Node, OperatorGraph
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.schedule import INSIDE, Region, Schedule
from tools.codegen.rewrite.bind import bind


def loop_of(graph: OperatorGraph, region: Region) -> Loop | None:
    """Find the loop of a region that the library has; none where it holds another number of loops than one."""
    loops = [node for name in region.nodes if isinstance(node := graph.by_name[name], Loop)]
    return loops[0] if len(loops) == 1 and not region.is_generated else None


def body_of(graph: OperatorGraph, region: Region) -> OperatorGraph | None:
    """Give what the regions of a step are of; none where a region holds no loop of its own."""
    loop = loop_of(graph, region)
    return loop.body_in(graph) if loop else None


def laid_out_body(graph: OperatorGraph, region: Region) -> OperatorGraph:
    """Give the body of a region that has one, in the memory layouts that its regions ask for."""
    body = body_of(graph, region)
    assert body is not None, "a region with a body is a loop"
    return bind(body, Schedule(regions=region.body)).laid_out


def generated_regions(graph: OperatorGraph, regions: tuple[Region, ...], around: str = "") -> Iterator[tuple[OperatorGraph, Region]]:
    """Yield every generated region in order, those of bodies by their full ids, each with the graph that its nodes are of."""
    for region in regions:
        address = region.model_copy(update={"id": f"{around}{region.id}"})
        if region.is_generated:
            yield graph, address
        elif region.body:
            yield from generated_regions(laid_out_body(graph, region), region.body, f"{address.id}{INSIDE}")


def left_nodes(graph: OperatorGraph, regions: tuple[Region, ...]) -> Iterator[Node]:
    """Yield the nodes that no generated region runs; of a loop that launches kernels those of its body."""
    for region in regions:
        if region.body:
            yield from left_nodes(laid_out_body(graph, region), region.body)
        if not region.is_generated:
            nodes = (graph.by_name[name] for name in region.nodes)
            yield from (node for node in nodes if not (region.body and isinstance(node, Loop)))
