"""When a forward may be captured as a CUDA graph, and how many launches that would save."""

from __future__ import annotations

from collections.abc import Callable

from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import Called, DataSized, Node, OperatorGraph, Ref
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.operators.families import RECURRENT, RECURRENT_LAUNCHES, WAITING
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.bodies import laid_out_body, left_nodes, loop_of
from tools.codegen.schedule.buffer_updates import can_wait
from tools.codegen.schedule.copied_numbers import copies_numbers
from tools.codegen.schedule.together import spared

WHOLE = "forward"
"""What stands for the region in an action on the whole forward."""
CAPTURE = "capture"
CAPTURES = ("none", "graph")
LEAST_LAUNCHES = 16
"""Launches below which nothing is offered: a replay still copies inputs in and results out, two launches a tensor."""
SEVERAL = {"segments": 4}
"""Launches of operators that are written as several: numbers in a row and a search of each, twice."""
PICKING = 6
"""Launches by which PyTorch picks an expert's rows and writes them back, at least: a comparison, `nonzero`, two gathers, a sum."""
LAYERS, BIDIRECTIONAL, BATCH_FIRST = 4, 7, 8
"""Where ATen's recurrent operators on padded sequences have these arguments."""


def launches(graph: OperatorGraph, schedule: Schedule) -> int:
    """Count the launches of one call, at least: those of each generated region, and one for each operator of the library.

    Writes to buffers that are made together at the end are not counted.
    """
    count = graph.calls if graph.blocked else -spared(graph, schedule)
    for region in schedule.regions:
        if region.is_generated:
            count += generated_launches(graph, region)
        else:
            loop = loop_of(graph, region) if region.body else None
            nodes = [graph.by_name[name] for name in region.nodes if not loop or name != loop.name]
            count += sum(_library_launches(graph, node) for node in nodes if not is_view(node) and not can_wait(graph, node))
            count += loop.steps[0] * launches(laid_out_body(graph, region), Schedule(regions=region.body)) if loop else 0
    return count


def kernels(graph: OperatorGraph, regions: tuple[Region, ...], each: Callable[[OperatorGraph, Region], int]) -> int:
    """Count the launches of generated regions by what `each` says of one, those of loops' bodies at every step."""
    count = 0
    for region in regions:
        loop = loop_of(graph, region) if region.body else None
        if region.is_generated:
            count += each(graph, region)
        elif loop:
            count += loop.steps[0] * kernels(laid_out_body(graph, region), region.body, each)
    return count


def generated_launches(graph: OperatorGraph, region: Region) -> int:
    """Count the launches of a generated region, at least: of recurrent layers one a step, else one."""
    node = graph.by_name[region.nodes[0]]
    return _steps(graph, node) if node.op in RECURRENT else 1


def _steps(graph: OperatorGraph, node: Node) -> int:
    """Count the steps of recurrent layers on padded sequences."""
    shape = graph.meta(node.args[0]).written
    return shape[1 if node.args[BATCH_FIRST] and len(shape) == 3 else 0]


def _library_launches(graph: OperatorGraph, node: Node) -> int:
    """Count the launches of one operator of the library, at least; of a loop those of all its steps."""
    if isinstance(node, Dispatch):
        # where rows are is looked up and gathered, and written back
        return node.experts * (PICKING + sum(not is_view(each) for each in node.body.nodes))
    if isinstance(node, Loop):
        return node.steps[0] * sum(_library_launches(node.body, each) for each in node.body.nodes if not is_view(each))
    return _recurrent_launches(graph, node) if node.op in RECURRENT else SEVERAL.get(node.op, 1)


def _recurrent_launches(graph: OperatorGraph, node: Node) -> int:
    """Count the launches of the library's recurrent layers, at least: one for each step, layer and direction, where these are known."""
    given = node.args[0] if node.args else None
    if node.overload != "input" or len(node.args) <= BATCH_FIRST or not isinstance(given, Ref):
        return RECURRENT_LAUNCHES
    return max(RECURRENT_LAUNCHES, _steps(graph, node) * int(node.args[LAYERS]) * (2 if node.args[BIDIRECTIONAL] else 1))


def can_capture(graph: OperatorGraph, schedule: Schedule) -> bool:
    """Whether a capture gives what the forward gives at every call, and launches enough to be worth it."""
    if graph.keeps_state or not graph.replayable or any(_waits(node) for node in left_nodes(graph, schedule.regions)):
        return False
    return launches(graph, schedule) >= LEAST_LAUNCHES and not copies_numbers(graph, schedule)


def _waits(node: Node) -> bool:
    """Whether the host may wait for the device in an operator of the library, which no capture can hold."""
    if isinstance(node, Loop):
        return any(_waits(each) for each in node.body.nodes)
    return isinstance(node, Dispatch | DataSized | Called) or node.op in WAITING
