"""What a compiler such as torch.compile would take for a reference, estimated: the library's products, and one kernel for all between two.

It is not timed and not asked what it would write: all that can be fused is, by the fusions and with the settings of our own kernels.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from tools.codegen import OperatorGraph, initial_schedule
from tools.codegen.ir.loop import Loop
from tools.codegen.schedule.options import stands_alone
from tools.codegen.schedule.partition import STANDING_ALONE
from tools.cost.estimate import LaunchCost, call_us, reference_costs
from tools.cost.fusion_plans import structures
from tools.cost.schedule_model import ScheduleModel
from tools.hardware import rates
from tools.records import HardwareSheet, PrecisionPolicy, Problem


class Compiled(NamedTuple):
    """What the cost model says of one call of a reference, microseconds."""

    eager_us: float
    """By the library, an operator at a time."""
    compiled_us: float
    """As a compiler would leave it."""


def compiled_call(problem: Problem, graph: OperatorGraph, sheet: HardwareSheet, policy: PrecisionPolicy) -> Compiled | None:
    """Estimate a call by its graph, but one that loops around products by its reference: a compiler leaves each step's to the library."""
    loops = [node for node in graph.nodes if isinstance(node, Loop)]
    around = any(node.op in STANDING_ALONE for loop in loops for node in loop.body.nodes)
    return compiled_reference(problem, sheet) if around else compiled_graph(graph, sheet, policy)


def compiled_graph(graph: OperatorGraph, sheet: HardwareSheet, policy: PrecisionPolicy) -> Compiled | None:
    """Estimate a call as schedules are modelled; None where nothing is known of the graph."""
    if graph.blocked:
        return None
    model, start = ScheduleModel(graph, sheet, policy), initial_schedule(graph)
    alone = frozenset(name for region in start.regions if stands_alone(graph, start, region.id) for name in region.nodes)
    fused = structures(graph, sheet, model.glance, lambda region: True, start, alone)
    eager = model.choices(start, 1)[0].us
    return Compiled(eager, min([eager, *(model.choices(schedule, 1)[0].us for schedule in fused)]))


def compiled_reference(problem: Problem, sheet: HardwareSheet) -> Compiled:
    """Estimate a call as a reference is modelled, without a graph; at several shapes, the main one.

    Operators between two products are one launch, with the bytes of the largest of them.
    """
    costs = reference_costs(problem, sheet)
    left: list[LaunchCost] = []
    for is_product, run in groupby(costs, key=lambda cost: cost.work.family in rates.PRODUCTS):
        found = tuple(run)
        left += found if is_product else [max(found, key=lambda cost: cost.device_us)]
    return Compiled(call_us(costs, sheet), call_us(tuple(left), sheet))
