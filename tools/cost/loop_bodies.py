"""Kernels for one step of a loop that no kernel holds as a whole: what its body comes to, where that is faster than its operators."""

from __future__ import annotations

from dataclasses import replace

from tools.codegen import Region, Schedule
from tools.codegen.ir.loop import Loop
from tools.codegen.schedule.partition import natural_regions
from tools.codegen.schedule.plan import can_generate
from tools.cost.fusion_plans import structures
from tools.cost.schedule_model import ScheduleModel

WORD_APART = "loop.apart.default"
"""Target by which a loop is no region's but its own."""


def with_bodies(model: ScheduleModel, start: Schedule) -> Schedule:
    """Give the loops that a schedule leaves to Python the regions of a step, where these are faster."""
    for region in start.regions:
        if not region.is_generated and not region.body and not can_generate(model.graph, region.nodes):
            start = start.replaced(region.model_copy(update={"body": best_body(model, region)}))
    return start


def loops_apart(model: ScheduleModel) -> Schedule | None:
    """Leave loops that a kernel could hold to Python, with the regions of a step; None where none of them gains by that."""
    graph = model.graph
    names = {node.name for node in graph.nodes if isinstance(node, Loop) and can_generate(graph, (node.name,))}
    # by another name nothing can hold them, so no region joins them
    others = tuple(replace(node, target=WORD_APART) if node.name in names else node for node in graph.nodes)
    start = natural_regions(replace(graph, nodes=others)) if names else Schedule(regions=())
    gains = False
    for region in start.regions:
        if names & set(region.nodes):
            changed = region.model_copy(update={"body": best_body(model, region)})
            if changed.body and model.region_us(changed) < model.glance(graph, Schedule(regions=(_held(model, region),))):
                gains, start = True, start.replaced(changed)
    return with_bodies(model, start) if gains else None


def _held(model: ScheduleModel, region: Region) -> Region:
    """Have a kernel hold the loop."""
    planned = model.planned(region)
    return region.model_copy(update={"template": planned.template.name, "parameters": planned.defaults(model.sheet.sms)})


def best_body(model: ScheduleModel, region: Region) -> tuple[Region, ...]:
    """Choose the regions of a step; none where a region holds no loop, or its operators are as fast."""
    inside = model.of_body(region)
    if inside is None:
        return ()
    start = with_bodies(inside, natural_regions(inside.graph))
    found = structures(inside.graph, model.sheet, inside.glance, inside.prefers_own, start, whole=inside.glance_of_all)
    choices = [choice for schedule in found for choice in inside.choices(schedule, 1)]
    bodies = [choice.schedule.regions for choice in choices if any(each.is_generated for each in choice.schedule.regions)]
    ways = [region, *(region.model_copy(update={"body": body}) for body in bodies)]
    return min(ways, key=model.region_us).body


def has_bodies(schedule: Schedule) -> bool:
    """Whether a loop of Python launches kernels."""
    return any(region.body for region in schedule.regions)


def left_loops(schedule: Schedule) -> frozenset[str]:
    """Name the nodes of regions that have a body."""
    return frozenset(name for region in schedule.regions if region.body for name in region.nodes)
