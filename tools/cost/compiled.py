"""What a compiler such as torch.compile would take for a reference, estimated: the library's products, and one kernel for all between two.

It is not timed and not asked what it would write: all that can be fused is, by the fusions and with the settings of our own kernels.
"""

from __future__ import annotations

from itertools import groupby

from tools.codegen import OperatorGraph, initial_schedule
from tools.codegen.schedule.options import stands_alone
from tools.cost.estimate import LaunchCost, call_us, reference_costs
from tools.cost.fusion_plans import structures
from tools.cost.schedule_model import ScheduleModel
from tools.hardware import rates
from tools.records import HardwareSheet, PrecisionPolicy, Problem


def compiled_us(graph: OperatorGraph, sheet: HardwareSheet, policy: PrecisionPolicy) -> float | None:
    """Estimate a call as a compiler would leave it, microseconds, as schedules are modelled; None where nothing is known of the graph."""
    if graph.blocked:
        return None
    model, start = ScheduleModel(graph, sheet, policy), initial_schedule(graph)
    alone = frozenset(name for region in start.regions if stands_alone(graph, start, region.id) for name in region.nodes)
    fused = structures(graph, sheet, model.glance, lambda region: True, start, alone)
    return min(model.choices(schedule, 1)[0].us for schedule in (start, *fused))


def compiled_reference_us(problem: Problem, sheet: HardwareSheet) -> float:
    """Estimate the same as the reference is modelled, without a graph; at several shapes, a call on average.

    Operators between two products are one launch, with the bytes of the largest of them.
    """
    if problem.shapes:
        weight = sum(shape.weight for shape in problem.shapes)
        return sum(shape.weight * compiled_reference_us(problem.at(shape), sheet) for shape in problem.shapes) / weight
    costs: list[LaunchCost] = []
    for is_product, run in groupby(reference_costs(problem, sheet), key=lambda cost: cost.work.family in rates.PRODUCTS):
        found = tuple(run)
        costs += found if is_product else [max(found, key=lambda cost: cost.device_us)]
    return call_us(tuple(costs), sheet)
