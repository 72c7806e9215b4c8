"""The action `reduction_pushdown`: which schedules it applies to, and what it makes of one."""

from __future__ import annotations

from collections.abc import Iterator

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import LIBRARY, Region, Schedule
from tools.codegen.rewrite.bind import BoundGraph
from tools.codegen.rewrite.pushdown.products import ReductionPushdown, reduction_pushdowns, with_reduction_pushdown
from tools.codegen.schedule.partition import STANDING_ALONE, natural_regions, ordered
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.shared.template import Pattern
from tools.records import Action, ActionKind, HardwareSheet

ALGEBRA, REDUCTION_PUSHDOWN = "algebra", "reduction_pushdown"


def pushdown_actions(bound: BoundGraph, sheet: HardwareSheet) -> Iterator[Action]:
    """Yield an action for each sum that can be taken before its product; its regions are those of the two and what is between."""
    for found in reduction_pushdowns(bound.rewritten):
        yield Action(
            kind=ActionKind.ALGORITHM, region=_region(bound.schedule, found), parameters={ALGEBRA: REDUCTION_PUSHDOWN, "sms": sheet.sms}
        )


def push_down(bound: BoundGraph, action: Action, sms: int) -> Schedule | None:
    """Return the schedule with the sum of the action's regions pushed down; none where they hold no such sum.

    Other regions stay as they are. New ones are generated where they can be, but for products and convolutions that have tiles.
    """
    graph, schedule = bound.rewritten, bound.schedule
    found = next((each for each in reduction_pushdowns(graph) if _region(schedule, each) == action.region), None)
    if found is None or action.kind is not ActionKind.ALGORITHM or action.parameters.get(ALGEBRA) != REDUCTION_PUSHDOWN:
        return None
    after = with_reduction_pushdown(graph, [found.reduction.name])
    touched = set(found.nodes)
    kept = [region for region in schedule.regions if not touched & set(region.nodes)]
    done = {name for region in kept for name in region.nodes}
    # what is new starts in its natural regions, less what other regions hold already
    fresh = [tuple(name for name in region.nodes if name not in done) for region in natural_regions(after).regions]
    before = {region.nodes: region for region in kept}
    regions = ordered(after, [*before, *(nodes for nodes in fresh if nodes)])
    settled = tuple(before[r.nodes].model_copy(update={"id": r.id}) if r.nodes in before else _generated(after, r, sms) for r in regions)
    return schedule.model_copy(update={"regions": settled, "reduction_pushdown": (*schedule.reduction_pushdown, found.reduction.name)})


def _region(schedule: Schedule, found: ReductionPushdown) -> str:
    return "+".join(region.id for region in schedule.regions if set(found.nodes) & set(region.nodes))


def _generated(graph: OperatorGraph, region: Region, sms: int) -> Region:
    try:
        planned = plan_region(graph, region.nodes)
    except LoweringError:
        return Region(id=region.id, nodes=region.nodes, template=LIBRARY)
    if planned.template.pattern is not Pattern.REDUCTION and any(graph.by_name[name].op in STANDING_ALONE for name in region.nodes):
        return Region(id=region.id, nodes=region.nodes, template=LIBRARY)
    return Region(id=region.id, nodes=region.nodes, template=planned.template.name, parameters=planned.defaults(sms))
