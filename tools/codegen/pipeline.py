"""The generator from a problem to a file, one function a stage.

trace         Problem                          -> OperatorGraph   the reference's operators, sizes merged over traces
canonicalize  OperatorGraph                    -> Rewritten       fewer kinds of operators
partition     OperatorGraph                    -> Schedule        the regions that share a kernel; actions change them
rewrite       OperatorGraph, Schedule          -> BoundGraph      the schedule's algebra, and its layouts in memory
lower         BoundGraph                       -> LoweredRegion…  each generated region as expressions over atoms
lay_out       LoweredRegion…                   -> PlannedRegion…  the template that lays it out
emit_regions  Problem, BoundGraph, PlannedRegion… -> EmittedRegions  Triton kernels and their host functions
link          Problem, BoundGraph, EmittedRegions -> Emission     one file with a `ModelNew`
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.schedule import Schedule
from tools.codegen.module.emit import emit_regions
from tools.codegen.module.link import Emission, link
from tools.codegen.module.passthrough import pass_through
from tools.codegen.rewrite.bind import BoundGraph, bind
from tools.codegen.rewrite.rewriter import Rewritten
from tools.codegen.schedule.bodies import generated_regions
from tools.codegen.schedule.partition import initial_schedule
from tools.codegen.schedule.plan import MOST_NODES, LoweredRegion, PlannedRegion, can_generate, choose_template, lower_region
from tools.codegen.trace.exports import Exports
from tools.codegen.without_rules import canonical
from tools.records import Problem

MOST_UNROLLED = 400
"""Operators up to which a reference with a loop that no kernel can hold is traced step by step."""


def trace(problem: Problem, variants: tuple[Problem, ...] | None = None) -> OperatorGraph:
    """Trace a reference, at small `variants` of it too, which are sought where none are given, and bring its graph into canonical form.

    A short loop is its operators, step by step, where no kernel can hold it, or where these make no more kernels.
    """
    return trace_rewritten(problem, variants).graph


def trace_rewritten(problem: Problem, variants: tuple[Problem, ...] | None = None) -> Rewritten:
    """Do the same and say what was rewritten."""
    exports = Exports(problem, variants)
    whole = canonical(problem, exports=exports)
    loops = [node for node in whole.graph.nodes if isinstance(node, Loop)]
    operators = len(problem.work.operators)
    able = all(can_generate(whole.graph, (loop.name,)) for loop in loops)
    if not loops or operators > MOST_UNROLLED or (able and operators > MOST_NODES):
        return whole
    unrolled = canonical(problem, loops=False, exports=exports)
    return whole if unrolled.graph.blocked or (able and _kernels(unrolled.graph) > _kernels(whole.graph)) else unrolled


def _kernels(graph: OperatorGraph) -> int:
    """Count the natural regions of a graph, and what is left to the library among them as no kernel at all."""
    regions = initial_schedule(graph).regions
    return sum(1 if can_generate(graph, region.nodes) else MOST_NODES for region in regions)


def partition(graph: OperatorGraph) -> Schedule:
    """Partition a graph into natural regions, each left to the reference's own operators; actions generate and change them."""
    return initial_schedule(graph)


def rewrite(graph: OperatorGraph, schedule: Schedule) -> BoundGraph:
    """Rewrite a graph as a schedule says: folded norms, reductions pushed down, folded constants, memory layouts."""
    return bind(graph, schedule)


def lower(bound: BoundGraph) -> tuple[LoweredRegion, ...]:
    """Lower every generated region, those of loops' bodies too; raises LoweringError with the reason where one cannot be."""
    generated = generated_regions(bound.laid_out, bound.schedule.regions)
    return tuple(LoweredRegion(graph, region, lower_region(graph, region.nodes, region.template)) for graph, region in generated)


def lay_out(lowered: Sequence[LoweredRegion]) -> tuple[PlannedRegion, ...]:
    """Lay every lowered region out by its template; raises LoweringError where that is not the one which the schedule names."""
    planned = [PlannedRegion(each.graph, each.region, choose_template(each.graph, each.kernel)) for each in lowered]
    for each in planned:
        if each.planned.template.name != each.region.template:
            raise LoweringError(f"region {each.region.id} is a {each.planned.template.name} region, not {each.region.template}")
    return tuple(planned)


def emit(problem: Problem, graph: OperatorGraph, schedule: Schedule) -> Emission:
    """Write the source of a schedule; raises LoweringError where a size it needs cannot be told at run time."""
    if graph.blocked:
        return pass_through(problem, graph, schedule)
    bound = rewrite(graph, schedule)
    planned = lay_out(lower(bound))
    return link(problem, bound, emit_regions(problem, bound, planned))
