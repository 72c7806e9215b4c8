"""The actions that fold: batch norms into weights, and regions made of parameters alone into constants that are packed once."""

from __future__ import annotations

from collections.abc import Iterator

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.rewrite.bind import BoundGraph, bind
from tools.codegen.rewrite.fold_batch_norm import FoldedBatchNorm, folded_batch_norms, with_folded_batch_norms
from tools.codegen.rewrite.fold_constants import foldable_constants, with_prepacked
from tools.codegen.schedule.partition import ordered
from tools.codegen.schedule.plan import plan_region
from tools.codegen.schedule.push_down import ALGEBRA
from tools.codegen.templates.shared.prepack import PREPACKED, WEIGHTS
from tools.records import Action, ActionKind, HardwareSheet

FOLD_BATCH_NORM = "fold_batch_norm"


def folding_actions(bound: BoundGraph, sheet: HardwareSheet) -> Iterator[Action]:
    """Yield the folding of all norms at once and of each, then the packing of all regions that are made of parameters alone.

    The regions of a folding are those of the product and of the norm.
    """
    schedule = bound.schedule
    found = _found(bound)
    for group in [found, *([each] for each in found)] if len(found) > 1 else [found] if found else []:
        region = "+".join(_regions(schedule, group))
        yield Action(kind=ActionKind.ALGORITHM, region=region, parameters={ALGEBRA: FOLD_BATCH_NORM, "sms": sheet.sms})
    names = "+".join(packable_regions(bound))
    if names:
        yield Action(kind=ActionKind.LAYOUT, region=names, parameters={WEIGHTS: PREPACKED})


def folded(bound: BoundGraph, action: Action, sms: int) -> Schedule | None:
    """Return the schedule with the norms of the action's regions folded; none where they are not the regions of such norms.

    Regions stay what they are, less the norms: a kernel that normalised first starts with what came after.
    """
    graph, schedule = bound.reference, bound.schedule
    wanted = set(action.region.split("+"))
    chosen = [each for each in _found(bound) if set(_regions(schedule, [each])) <= wanted]
    if action.kind is not ActionKind.ALGORITHM or set(_regions(schedule, chosen)) != wanted:
        return None
    takes = {each.product.name: each.norm.name for each in chosen}
    norms = frozenset(takes.values())
    changed = schedule.model_copy(update={"folded_batch_norms": (*schedule.folded_batch_norms, *(each.norm.name for each in chosen))})
    after = bind(graph, changed).rewritten
    new: dict[tuple[str, ...], Region] = {}
    for region in schedule.regions:
        left = {takes.get(name, name) for name in region.nodes if name not in norms}
        nodes = tuple(sorted(left, key=lambda name: after.order[name]))
        if nodes:
            new[nodes] = region.model_copy(update={"nodes": nodes})
    regions = tuple(new[one.nodes].model_copy(update={"id": one.id}) for one in ordered(after, list(new)))
    changed = changed.model_copy(update={"regions": regions})
    seen = bind(graph, changed).laid_out
    before = {region.nodes for region in schedule.regions}
    settled = tuple(region if region.nodes in before else _settled(seen, region, sms) for region in regions)
    return changed.model_copy(update={"regions": settled})


def packable_regions(bound: BoundGraph) -> tuple[str, ...]:
    """Name the regions of which all operators can be packed."""
    graph, schedule = bound.rewritten, bound.schedule
    able = frozenset(foldable_constants(graph))
    found = [region for region in schedule.regions if set(region.nodes) <= able]
    while True:
        names = {name for region in found for name in region.nodes}
        # one that needs what another region makes beside other things stays
        fit = [
            region
            for region in found
            if {node.name for node in with_prepacked(graph, region.nodes).prepacked[len(graph.prepacked) :]} <= names
        ]
        if len(fit) == len(found):
            return tuple(region.id for region in fit)
        found = fit


def prepacked_regions(bound: BoundGraph, action: Action) -> Schedule | None:
    """Return the schedule without the action's regions, whose values `pack_weights` makes; none where they are not `packable_regions`."""
    schedule, names = bound.schedule, action.region.split("+")
    if action.kind is not ActionKind.LAYOUT or action.parameters != {WEIGHTS: PREPACKED} or set(names) != set(packable_regions(bound)):
        return None
    gone = tuple(name for region in schedule.regions if region.id in names for name in region.nodes)
    left = [region for region in schedule.regions if region.id not in names]
    regions = tuple(region.model_copy(update={"id": f"r{place}"}) for place, region in enumerate(left))
    return schedule.model_copy(update={"regions": regions, "prepacked": (*schedule.prepacked, *gone)})


def _found(bound: BoundGraph) -> list[FoldedBatchNorm]:
    """List the norms that can be folded yet and whose regions the schedule has."""
    home = {name for region in bound.schedule.regions for name in region.nodes}
    found = folded_batch_norms(with_folded_batch_norms(bound.reference, bound.schedule.folded_batch_norms))
    return [each for each in found if {each.product.name, each.norm.name} <= home]


def _regions(schedule: Schedule, found: list[FoldedBatchNorm]) -> list[str]:
    """Name the regions of products and norms, in order."""
    names = {name for each in found for name in (each.product.name, each.norm.name)}
    return [region.id for region in schedule.regions if names & set(region.nodes)]


def _settled(graph: OperatorGraph, region: Region, sms: int) -> Region:
    """Keep a generated region's template and parameters where they still fit; else take those that do."""
    if not region.is_generated:
        return region
    try:
        planned = plan_region(graph, region.nodes, region.template)
    except LoweringError:
        return Region(id=region.id, nodes=region.nodes)
    if planned.template.name == region.template:
        return region
    return Region(id=region.id, nodes=region.nodes, template=planned.template.name, parameters=planned.defaults(sms))
