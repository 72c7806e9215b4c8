"""Tensors of numbers written in a forward that somebody reads in the device's memory: a kernel writes a few there, more are copied."""

from __future__ import annotations

from tools.codegen.ir.constant_tensors import MAKES_NUMBERS, is_written, only_number
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region


def copies_numbers(graph: OperatorGraph, schedule: Schedule) -> bool:
    """Whether a forward copies a tensor of numbers from the host's memory to the device at every call."""
    library = {name for region in schedule.regions if not region.is_generated for name in region.nodes}
    if any(graph.by_name[name].op == "chosen_number" for name in library):
        return True
    return bool(_read(graph, schedule) - _written(graph, schedule))


def written_numbers(graph: OperatorGraph, schedule: Schedule) -> int:
    """Count the launches of kernels that write numbers to the device."""
    return len(_read(graph, schedule) & _written(graph, schedule))


def _written(graph: OperatorGraph, schedule: Schedule) -> set[str]:
    """Name the tensors that kernels write: a forward without kernels copies them all."""
    return {node.name for node in graph.nodes if is_written(node)} if any(region.is_generated for region in schedule.regions) else set()


def _read(graph: OperatorGraph, schedule: Schedule) -> set[str]:
    """Name the tensors of several numbers that the library or a kernel reads in memory."""
    library = {name for region in schedule.regions if not region.is_generated for name in region.nodes}
    made = {node.name: {node.name} for node in graph.nodes if node.target.startswith(MAKES_NUMBERS) and only_number(node) is None}
    if not made:
        return set()
    for node in graph.nodes:
        # a view of them is read as they are
        if is_view(node) and (viewed := [name for ref in node.refs for name in made.get(ref.name, ())]):
            made[node.name] = {*viewed, *made.get(node.name, ())}
    refs = [ref for name in library - set(made) for ref in graph.by_name[name].refs]
    planned = (plan_region(graph, region.nodes, region.template) for region in schedule.regions if region.is_generated)
    refs += [load.ref for each in planned for load in each.kernel.builder.loads]
    return {name for ref in refs for name in made.get(ref.name, ())}
