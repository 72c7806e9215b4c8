"""The legal actions on a schedule: each changes one thing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.operators.families import ATTENTIONS, EITHER_LAYOUT, PRODUCTS
from tools.codegen.ir.operators.joined_operands import joined_operands
from tools.codegen.ir.schedule import AS_IS, FORMAT, FORMATS, INSIDE, LIBRARY, RESULT_TOO, STEPS, Region, Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.channels_last import frees_results
from tools.codegen.schedule.bodies import body_of
from tools.codegen.schedule.cuda_graph import CAPTURE, CAPTURES, WHOLE, can_capture
from tools.codegen.schedule.cudnn_fusion import SCOPE, epilogues
from tools.codegen.schedule.fold import folding_actions
from tools.codegen.schedule.partition import STANDING_ALONE, has_convolution, producers, producers_of
from tools.codegen.schedule.plan import TILE, can_generate, can_tile, plan_region
from tools.codegen.schedule.push_down import ALGEBRA, pushdown_actions
from tools.codegen.schedule.rounding import policy_of_region
from tools.codegen.schedule.together import EACH, LAUNCHES, TOGETHER, together
from tools.codegen.templates.shared.knob import ROUGH, may_round
from tools.codegen.templates.shared.prepack import EVERY_CALL, WEIGHTS
from tools.records import Action, ActionKind, HardwareSheet, PrecisionPolicy

EXACT = PrecisionPolicy()
UNSAID = {WEIGHTS: EVERY_CALL}
"""Values of parameters that a region need not have."""
MOST_PAIRS = 64
"""Pairs of regions looked at for fusion in one schedule."""


def options(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet, policy: PrecisionPolicy = EXACT) -> tuple[Action, ...]:
    """List every legal action that changes something and that the policy allows, the widest first."""
    if graph.blocked:
        return tuple(_captures(graph, schedule))
    bound = bind(graph, schedule)
    algebra = [*folding_actions(bound, sheet), *pushdown_actions(bound, sheet)]
    captures = [*_shared_launches(bound.rewritten, schedule), *_captures(bound.rewritten, schedule)]
    graph = bound.laid_out
    found = [*algebra, *_layouts(graph, schedule), *_all_at_once(graph, schedule, sheet)]
    for region in schedule.regions:
        found += _generate(graph, region, sheet)
    found += fusions(graph, schedule, sheet)
    found += _epilogues(graph, schedule, sheet)
    for region in schedule.regions:
        found += _changes(graph, region, sheet, policy)
        found += _within(graph, region, sheet, policy)
    found += captures
    return tuple({action.id: action for action in found}.values())


def _captures(graph: OperatorGraph, schedule: Schedule) -> Iterator[Action]:
    """Yield the capture of the whole forward as a CUDA graph, where its launches are many, and its end."""
    if schedule.captured or can_capture(graph, schedule):
        yield Action(kind=ActionKind.LAUNCH, region=WHOLE, parameters={CAPTURE: CAPTURES[not schedule.captured]})


def _shared_launches(graph: OperatorGraph, schedule: Schedule) -> Iterator[Action]:
    """Yield that regions which wait for none of one another share their launches, and the end of it."""
    if schedule.together or together(graph, schedule):
        yield Action(kind=ActionKind.LAUNCH, region=WHOLE, parameters={LAUNCHES: EACH if schedule.together else TOGETHER})


def _layouts(graph: OperatorGraph, schedule: Schedule) -> Iterator[Action]:
    """Yield the layouts of library convolutions: all of them at once, and each by itself where there are several."""
    regions = [region for region in schedule.regions if has_convolution(graph, region)]
    groups = [regions, *([region] for region in regions)] if len(regions) > 1 else [regions] if regions else []
    for group in groups:
        names = frozenset(name for region in group for name in region.nodes if graph.by_name[name].op in EITHER_LAYOUT)
        for value in FORMATS:
            if value == RESULT_TOO and not frees_results(graph, names):
                continue
            if any(region.parameters.get(FORMAT, AS_IS) != value for region in group):
                yield Action(kind=ActionKind.LAYOUT, region="+".join(region.id for region in group), parameters={FORMAT: value})


def _all_at_once(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> Iterator[Action]:
    able = [region.id for region in schedule.regions if not region.is_generated and can_generate(graph, region.nodes)]
    # the library's convolutions and products are often the faster ones: all that stands around them is an action by itself
    around = [name for name in able if not stands_alone(graph, schedule, name)]
    for names in (around, able) if 1 < len(around) < len(able) else (able,):
        if len(names) > 1:
            yield Action(kind=ActionKind.FUSION, region="+".join(names), parameters={"scope": "each", "sms": sheet.sms})


def stands_alone(graph: OperatorGraph, schedule: Schedule, name: str) -> bool:
    """Whether a region holds a product, an attention or a convolution, whose library call is often the faster one."""
    region = schedule.region(name)
    return region is not None and any(graph.by_name[node].op in STANDING_ALONE for node in region.nodes)


def _generate(graph: OperatorGraph, region: Region, sheet: HardwareSheet) -> Iterator[Action]:
    if not region.is_generated and can_generate(graph, region.nodes):
        if len(region.nodes) > 1:
            yield Action(kind=ActionKind.FUSION, region=region.id, parameters={"scope": "each", "sms": sheet.sms})
        else:
            yield Action(kind=ActionKind.ALGORITHM, region=region.id, parameters={"implementation": "generated", "sms": sheet.sms})
    body = None if region.body else body_of(graph, region)
    if body and any(can_generate(body, (node.name,)) for node in body.nodes if not is_view(node)):
        yield Action(kind=ActionKind.ALGORITHM, region=region.id, parameters={"implementation": STEPS, "sms": sheet.sms})


def fusions(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> Iterator[Action]:
    """Yield what makes one kernel of several regions: attentions written out, then pairs that feed one another or read alike."""
    home = {name: region for region in schedule.regions for name in region.nodes}
    pairs: dict[tuple[str, str], tuple[Region, Region]] = {}
    for region in schedule.regions:
        for name in region.nodes:
            for source in producers(graph, graph.by_name[name]):
                feeder = home[source]
                if feeder.id != region.id:
                    pairs[feeder.id, region.id] = (feeder, region)
    for nodes, name in _attentions(graph, schedule, home):
        if can_generate(graph, nodes):
            yield Action(kind=ActionKind.FUSION, region=name, parameters={"scope": "together", "sms": sheet.sms})
    pairs |= {pair: regions for pair, regions in _alike(graph, schedule).items() if pair not in pairs}
    for one, two in list(pairs.values())[:MOST_PAIRS]:
        if can_generate(graph, (*one.nodes, *two.nodes)):
            yield Action(kind=ActionKind.FUSION, region=f"{one.id}+{two.id}", parameters={"scope": "together", "sms": sheet.sms})


def _alike(graph: OperatorGraph, schedule: Schedule) -> dict[tuple[str, str], tuple[Region, Region]]:
    """Pair regions that read one of their largest operands alike: one pass over it may do for both, as for sums of rows and of columns."""
    readers: dict[str, list[Region]] = {}
    for region in schedule.regions:
        read = {name: size for each in region.nodes for name, size in _read(graph, each)}
        outside = {name: size for name, size in read.items() if name not in region.nodes}
        if outside and not any(graph.by_name[name].op in STANDING_ALONE for name in region.nodes):
            for name in (name for name, size in outside.items() if size == max(outside.values())):
                readers.setdefault(name, []).append(region)
    return {(one.id, two.id): (one, two) for regions in readers.values() for one, two in itertools.pairwise(regions)}


def _read(graph: OperatorGraph, name: str) -> tuple[tuple[str, int], ...]:
    """Name what a node reads, seen through views, with its elements; kept with the graph."""
    known: dict[str, tuple[tuple[str, int], ...]] = graph.__dict__.setdefault("_read", {})
    if name not in known:
        known[name] = tuple(source for ref in graph.by_name[name].refs for source in _sources(graph, ref))
    return known[name]


def _sources(graph: OperatorGraph, ref: Ref) -> Iterator[tuple[str, int]]:
    """Name what a value is, seen through views, with its elements."""
    node = graph.by_name.get(ref.name)
    if node is not None and is_view(node):
        for other in node.refs:
            yield from _sources(graph, other)
    elif node is not None or ref.name in graph.inputs:
        yield ref.name, graph.meta(ref).numel


def _epilogues(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> Iterator[Action]:
    """Yield what leaves a convolution and the relu after it to one call of cuDNN."""
    for one, two in epilogues(graph, schedule) if sheet.backend == "cuda" else ():
        yield Action(kind=ActionKind.FUSION, region=f"{one.id}+{two.id}", parameters={"scope": SCOPE})


def _attentions(graph: OperatorGraph, schedule: Schedule, home: dict[str, Region]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the regions of an attention written out: the products of its scores, what makes weights of them, and the second product.

    Scores may be the sum of several products: all of these, then one alone. With one more region, where that brings sums of weights to
    what the second product made; with the concatenations that operands are laid out by, and without them, also around the operator.
    """
    feeders = {
        each.id: {home[source].id for name in each.nodes for source in producers(graph, graph.by_name[name])} for each in schedule.regions
    }
    for last in schedule.regions:
        product = next((graph.by_name[name] for name in last.nodes if graph.by_name[name].op in ("matmul", "bmm", "einsum")), None)
        left = _weights_of(graph, product) if product else ()
        for middle in {home[source].id: home[source] for source in left}.values():
            after = [each for each in schedule.regions if {middle.id, last.id} <= feeders[each.id] - {each.id}]
            firsts = [
                each for each in schedule.regions if each.id in feeders[middle.id] - {middle.id, last.id} and _multiplies(graph, each)
            ]
            for scores in ([firsts] if len(firsts) > 1 else []) + [[first] for first in firsts if middle.id != last.id]:
                for more in ([], *([each] for each in after)):
                    yield from _with_pieces(graph, [*scores, middle, last, *more], home)
    for region in schedule.regions:
        if any(graph.by_name[name].op in ATTENTIONS for name in region.nodes):
            yield from itertools.islice(_with_pieces(graph, [region], home), 1)


def _with_pieces(graph: OperatorGraph, parts: list[Region], home: dict[str, Region]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Name the nodes and the regions of some together, first with the concatenations that lay out what they multiply."""
    inside = {name for part in parts for name in part.nodes}
    joins = joined_operands(graph)
    wanted = {home[cat].id: home[cat] for cat, needs in joins.items() if cat not in inside and needs - joins.keys() <= inside}
    for all_parts in ([*wanted.values(), *parts], parts) if wanted else (parts,):
        yield tuple(name for part in all_parts for name in part.nodes), "+".join(part.id for part in all_parts)


def _multiplies(graph: OperatorGraph, region: Region) -> bool:
    return any(graph.by_name[name].op in PRODUCTS for name in region.nodes)


def _weights_of(graph: OperatorGraph, product: Node) -> tuple[str, ...]:
    """Name what makes the operands of a product that may be the weights of an attention."""
    operands = product.args[1] if product.op == "einsum" else product.args[:1]
    return tuple(name for operand in operands for name in producers_of(graph, operand))


def _within(graph: OperatorGraph, region: Region, sheet: HardwareSheet, policy: PrecisionPolicy) -> Iterator[Action]:
    """Yield what can be done to the regions of a loop's body, and the end of them."""
    body = body_of(graph, region) if region.body else None
    if body is None:
        return
    for action in options(body, Schedule(regions=region.body), sheet, policy):
        if action.region != WHOLE and not {ALGEBRA, FORMAT} & action.parameters.keys():
            names = "+".join(f"{region.id}{INSIDE}{name}" for name in action.region.split("+"))
            yield action.model_copy(update={"region": names})
    yield Action(kind=ActionKind.ALGORITHM, region=region.id, parameters={"implementation": LIBRARY})


def _changes(graph: OperatorGraph, region: Region, sheet: HardwareSheet, policy: PrecisionPolicy) -> Iterator[Action]:
    if not region.is_generated:
        return
    planned = plan_region(graph, region.nodes, region.template)
    allowed = policy_of_region(graph, region.nodes, policy)
    for name, knob in planned.template.knobs.items():
        if name == FORMAT:
            continue
        for value in knob.values:
            if value in ROUGH and not may_round(allowed):
                continue
            changed = {**region.parameters, name: value}
            if value != region.parameters.get(name, UNSAID.get(name)) and planned.fits(changed, name, sheet):
                yield Action(kind=knob.kind, region=region.id, parameters={name: value})
    if region.template != TILE and can_tile(graph, region.nodes):
        yield Action(kind=ActionKind.ALGORITHM, region=region.id, parameters={"implementation": TILE, "sms": sheet.sms})
    yield Action(kind=ActionKind.ALGORITHM, region=region.id, parameters={"implementation": LIBRARY})
