"""Tensors of numbers written in a forward: which schedules copy them from the host's memory at every call."""

from __future__ import annotations

from tools.codegen.ir.constant_tensors import MAKES_NUMBERS, only_number
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region


def copies_numbers(graph: OperatorGraph, schedule: Schedule) -> bool:
    """Whether a forward copies a tensor of numbers to the device, because the library or a kernel reads it there."""
    made = {node.name for node in graph.nodes if node.target.startswith(MAKES_NUMBERS) and only_number(node) is None}
    library = {name for region in schedule.regions if not region.is_generated for name in region.nodes}
    if any(graph.by_name[name].op == "chosen_number" for name in library):
        return True
    if not made:
        return False
    for node in graph.nodes:
        # a view of them is read as they are
        if is_view(node) and any(ref.name in made for ref in node.refs):
            made.add(node.name)
    if any(ref.name in made for name in library - made for ref in graph.by_name[name].refs):
        return True
    planned = (plan_region(graph, region.nodes, region.template) for region in schedule.regions if region.is_generated)
    return any(load.ref.name in made for each in planned for load in each.kernel.builder.loads)
