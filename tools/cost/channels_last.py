"""A schedule whose library convolutions run with their channels last, and what bringing their inputs there costs."""

from __future__ import annotations

from tools.codegen import IllegalAction, OperatorGraph, Region, Schedule, apply
from tools.codegen.ir.graph import LaidOut, Ref
from tools.codegen.ir.operators.families import EITHER_LAYOUT
from tools.codegen.ir.schedule import AS_IS, CHANNELS_LAST, FORMAT
from tools.codegen.rewrite.bind import bind
from tools.codegen.schedule.partition import has_convolution
from tools.hardware.rates import copy_gbps
from tools.records import ITEM_BYTES, Action, ActionKind, HardwareSheet


def library_convolutions(graph: OperatorGraph, schedule: Schedule) -> tuple[Region, ...]:
    """List the regions left to the library whose layout can be chosen."""
    return tuple(region for region in schedule.regions if not region.is_generated and has_convolution(graph, region))


def channels_last(graph: OperatorGraph, schedule: Schedule) -> Schedule | None:
    """Lay all convolutions of the library out with their channels last; None where there is none, or a kernel does not allow it."""
    regions = [region for region in library_convolutions(graph, schedule) if region.parameters.get(FORMAT, AS_IS) == AS_IS]
    if not regions:
        return None
    names = "+".join(region.id for region in regions)
    try:
        return apply(graph, schedule, Action(kind=ActionKind.LAYOUT, region=names, parameters={FORMAT: CHANNELS_LAST}))
    except IllegalAction:
        return None


def copies_us(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> float:
    """Time of bringing inputs and weights of convolutions to channels last, where they do not lie so, microseconds."""
    return laid_out_copies_us(bind(graph, schedule).laid_out, sheet)


def laid_out_copies_us(graph: OperatorGraph, sheet: HardwareSheet) -> float:
    """The same of a graph that is laid out."""
    moved = 0
    for node in graph.nodes:
        if isinstance(node, LaidOut) and node.op in EITHER_LAYOUT:
            copied = [arg for arg in node.args[0 if node.copied else 1 : 2] if isinstance(arg, Ref)]
            metas = [graph.meta(ref) for ref in copied if ref.name not in {made.name for made in graph.prepacked}]
            moved += sum(2 * meta.numel * ITEM_BYTES[meta.dtype] for meta in metas)
    return moved / copy_gbps(sheet) / 1e3
