"""The application of an action to a schedule: one action, one change, or the reason why it is not legal."""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import AS_IS, FORMAT, FORMATS, INSIDE, LIBRARY, STEPS, Region, Schedule
from tools.codegen.rewrite.bind import BoundGraph, bind
from tools.codegen.schedule.bodies import body_of
from tools.codegen.schedule.cuda_graph import CAPTURE, CAPTURES, LEAST_LAUNCHES, WHOLE, can_capture
from tools.codegen.schedule.cudnn_fusion import SCOPE, with_epilogue
from tools.codegen.schedule.fold import FOLD_BATCH_NORM, folded, prepacked_regions
from tools.codegen.schedule.partition import has_convolution, natural_regions, ordered
from tools.codegen.schedule.plan import TILE, Planned, can_generate, plan_region
from tools.codegen.schedule.push_down import ALGEBRA, push_down
from tools.codegen.schedule.together import EACH, LAUNCHES, TOGETHER, together
from tools.codegen.templates.registry import knobs_of
from tools.codegen.templates.shared.prepack import PREPACKED, WEIGHTS
from tools.records import Action, ActionKind

USUAL_SMS = 132
"""Multiprocessors assumed where an action does not say (H100 and H200)."""


class IllegalActionError(ValueError):
    """The action does not apply to this schedule; says why."""


IllegalAction = IllegalActionError


def apply(graph: OperatorGraph, schedule: Schedule, action: Action) -> Schedule:
    """Return the schedule after `action`; raises IllegalAction with the reason."""
    bound = bind(graph, schedule)
    if action.region == WHOLE:
        change = _share_launches if LAUNCHES in action.parameters else _capture
        return change(bound.rewritten, schedule, action)
    if graph.blocked:
        raise IllegalActionError(f"nothing of this reference can be generated: {graph.blocked[0]}")
    if INSIDE in action.region:
        return _apply_within(bound, action)
    regions = [schedule.region(name) for name in action.region.split("+")]
    found = [region for region in regions if region is not None]
    if len(found) != len(regions) or len({region.id for region in found}) != len(found):
        known = ", ".join(region.id for region in schedule.regions)
        raise IllegalActionError(f"there is no region {action.region}; the schedule has {known}")
    if changed := _rewrite(bound, action):
        return changed
    if FORMAT in action.parameters:
        return _change_layout(bound, found, action)
    return _change_regions(bound.laid_out, schedule, found, action)


def _change_regions(graph: OperatorGraph, schedule: Schedule, found: list[Region], action: Action) -> Schedule:
    if action.kind is ActionKind.FUSION:
        return _fuse(graph, schedule, found, action)
    if len(found) != 1:
        raise IllegalActionError(f"{action.kind} applies to one region, not to {action.region}")
    if "implementation" in action.parameters:
        return _implement(graph, schedule, found[0], action)
    return _turn(graph, schedule, found[0], action)


def _apply_within(bound: BoundGraph, action: Action) -> Schedule:
    """Apply an action on regions of one loop's body, which are named as `r1/r0+r1/r2`."""
    schedule = bound.schedule
    outer, _, _ = action.region.partition(INSIDE)
    names = [name.removeprefix(f"{outer}{INSIDE}") for name in action.region.split("+")]
    region = schedule.region(outer)
    body = body_of(bound.laid_out, region) if region and region.body else None
    if region is None or body is None or not all(name.startswith(f"{outer}{INSIDE}") for name in action.region.split("+")):
        raise IllegalActionError(f"{action.region} does not name regions of one loop's body")
    before = Schedule(regions=region.body)
    after = apply(body, before, action.model_copy(update={"region": "+".join(names)}))
    if after != before.model_copy(update={"regions": after.regions}):
        raise IllegalActionError(f"{action} changes more than the regions of a loop's body")
    return schedule.replaced(region.model_copy(update={"body": after.regions}))


def _rewrite(bound: BoundGraph, action: Action) -> Schedule | None:
    """Change the graph that the schedule's regions are of; none where the action is not about that."""
    if action.parameters.get(ALGEBRA) == FOLD_BATCH_NORM:
        changed = folded(bound, action, _sms(action))
        if changed is None:
            raise IllegalActionError(f"{action.region} are not the regions of batch norms in eval mode and of what they alone read")
        return changed
    if ALGEBRA in action.parameters:
        changed = push_down(bound, action, _sms(action))
        if changed is None:
            raise IllegalActionError(f"{action.region} holds no sum that can be taken before a product")
        return changed
    # a product of parameters alone is packed as it is; of any other product the split weights are, which is a parameter of its region
    return prepacked_regions(bound, action) if action.parameters == {WEIGHTS: PREPACKED} else None


def _capture(graph: OperatorGraph, schedule: Schedule, action: Action) -> Schedule:
    wanted = action.parameters.get(CAPTURE)
    if action.kind is not ActionKind.LAUNCH or wanted not in CAPTURES or len(action.parameters) > 1:
        raise IllegalActionError(f"an action on {WHOLE} is a launch with {CAPTURE}: one of {', '.join(CAPTURES)}")
    if schedule.captured == (wanted == CAPTURES[1]):
        raise IllegalActionError(f"{action} changes nothing")
    if wanted == CAPTURES[1] and not can_capture(graph, schedule):
        raise IllegalActionError(f"fewer than {LEAST_LAUNCHES} launches, or a forward whose calls depend on data or on one another")
    return schedule.model_copy(update={"captured": wanted == CAPTURES[1]})


def _share_launches(graph: OperatorGraph, schedule: Schedule, action: Action) -> Schedule:
    wanted = action.parameters[LAUNCHES]
    if action.kind is not ActionKind.LAUNCH or wanted not in (EACH, TOGETHER) or len(action.parameters) > 1:
        raise IllegalActionError(f"an action on {WHOLE} is a launch with {LAUNCHES}: {EACH} or {TOGETHER}")
    if schedule.together == (wanted == TOGETHER):
        raise IllegalActionError(f"{action} changes nothing")
    if wanted == TOGETHER and not together(graph, schedule):
        raise IllegalActionError("no two generated regions in a row wait for none of one another and have as many warps")
    return schedule.model_copy(update={"together": wanted == TOGETHER})


def _change_layout(bound: BoundGraph, regions: list[Region], action: Action) -> Schedule:
    graph, schedule = bound.rewritten, bound.schedule
    wanted = action.parameters[FORMAT]
    if action.kind is not ActionKind.LAYOUT or wanted not in FORMATS or len(action.parameters) > 1:
        raise IllegalActionError(f"{FORMAT} is a layout: one of {', '.join(FORMATS)}")
    if not all(has_convolution(graph, region) for region in regions):
        raise IllegalActionError(f"{FORMAT} applies to convolutions of the library and to dense ones of ours, not to {action.region}")
    changed = schedule
    for region in regions:
        others = {name: value for name, value in region.parameters.items() if name != FORMAT}
        changed = changed.replaced(region.model_copy(update={"parameters": others if wanted == AS_IS else {**others, FORMAT: wanted}}))
    if changed == schedule:
        raise IllegalActionError(f"{action} changes nothing")
    seen = bind(bound.reference, changed).laid_out
    for region in changed.regions:
        if region.is_generated:
            try:
                planned = plan_region(seen, region.nodes, region.template)
                if planned.template.name != region.template:
                    raise IllegalActionError(f"region {region.id} is of another template with channels last")
            except LoweringError as error:
                raise IllegalActionError(f"region {region.id} cannot be generated with channels last: {error}") from error
            if planned.template.refusal(planned.kernel, region.parameters):
                # what it reads lies otherwise now: its parameters were for the layout before
                kept = {FORMAT: region.parameters[FORMAT]} if FORMAT in region.parameters else {}
                changed = changed.replaced(region.model_copy(update={"parameters": planned.defaults(_sms(action)) | kept}))
    return changed


def _fuse(graph: OperatorGraph, schedule: Schedule, regions: list[Region], action: Action) -> Schedule:
    scope = action.parameters.get("scope", "together" if len(regions) > 1 else "each")
    if scope not in ("each", "together", SCOPE):
        raise IllegalActionError(f"scope is each, together or {SCOPE}, not {scope!r}")
    if scope == SCOPE:
        joined = with_epilogue(graph, schedule, regions)
        if joined is None:
            raise IllegalActionError(f"{action.region} is no library convolution with a relu that alone reads it")
        return joined
    if scope == "together":
        return _merge(graph, schedule, regions, _sms(action))
    made = []
    for region in regions:
        if region.is_generated:
            raise IllegalActionError(f"region {region.id} is generated already")
        made.append(_generated(graph, region, _sms(action)))
    return schedule.replaced(*made)


def _merge(graph: OperatorGraph, schedule: Schedule, regions: list[Region], sms: int) -> Schedule:
    if len(regions) < 2:
        raise IllegalActionError("a fusion together needs two regions, written r0+r1")
    chosen = {region.id for region in regions}
    names = sorted((name for region in regions for name in region.nodes), key=lambda name: graph.order[name])
    if not can_generate(graph, names):
        raise IllegalActionError(f"regions {' and '.join(sorted(chosen))} do not fit into one kernel")
    rest = [region for region in schedule.regions if region.id not in chosen]
    groups = [region.nodes for region in rest] + [tuple(names)]
    before = {region.nodes: region for region in rest}
    result = []
    try:
        sorted_regions = ordered(graph, groups)
    except LoweringError as error:
        raise IllegalActionError(f"regions {' and '.join(sorted(chosen))} do not make one: {error}") from error
    for region in sorted_regions:
        old = before.get(region.nodes)
        if old is None:
            formats = [each.parameters[FORMAT] for each in regions if FORMAT in each.parameters]
            result.append(_generated(graph, region.model_copy(update={"parameters": {FORMAT: formats[0]} if formats else {}}), sms))
        else:
            result.append(old.model_copy(update={"id": region.id}))
    return schedule.model_copy(update={"regions": tuple(result)})


def _implement(graph: OperatorGraph, schedule: Schedule, region: Region, action: Action) -> Schedule:
    wanted = action.parameters["implementation"]
    if wanted == LIBRARY and (region.is_generated or region.body):
        return schedule.replaced(Region(id=region.id, nodes=region.nodes))
    if wanted == STEPS and not region.is_generated and not region.body:
        body = generated_body(graph, region, _sms(action))
        if not any(each.is_generated for each in body):
            raise IllegalActionError(f"region {region.id} is no loop with operators that could be generated")
        return schedule.replaced(region.model_copy(update={"body": body}))
    if (wanted == "generated" and not region.is_generated) or (wanted == TILE and region.template != TILE):
        return schedule.replaced(_generated(graph, region, _sms(action), TILE if wanted == TILE else ""))
    raise IllegalActionError(
        f"implementation={wanted} changes nothing in region {region.id}, or is not library, generated, {STEPS} or {TILE}"
    )


def _turn(graph: OperatorGraph, schedule: Schedule, region: Region, action: Action) -> Schedule:
    if not region.is_generated:
        raise IllegalActionError(f"region {region.id} is left to the library and has no parameters; generate it first")
    knobs = knobs_of(region.template)
    parameters = dict(region.parameters)
    for name, value in action.parameters.items():
        knob = knobs.get(name)
        if knob is None or knob.kind is not action.kind:
            legal = ", ".join(key for key, each in knobs.items() if each.kind is action.kind) or "none"
            raise IllegalActionError(f"{action.kind} of a {region.template} region has parameters: {legal}; not {name}")
        if value not in knob.values:
            raise IllegalActionError(f"{name} is one of {', '.join(map(str, knob.values))}, not {value}")
        parameters[name] = value
    if parameters == region.parameters:
        raise IllegalActionError(f"{action} changes nothing")
    planned = plan_region(graph, region.nodes, region.template)
    if refusal := planned.template.refusal(planned.kernel, parameters):
        raise IllegalActionError(f"region {region.id} cannot be written so: {refusal}")
    return schedule.replaced(region.model_copy(update={"parameters": parameters}))


def generated_body(graph: OperatorGraph, region: Region, sms: int) -> tuple[Region, ...]:
    """Generate what can be of the natural regions of a loop's body; none where a region holds no loop."""
    body = body_of(graph, region)
    regions = natural_regions(body).regions if body else ()
    return tuple(_generated(body, each, sms) if body and can_generate(body, each.nodes) else each for each in regions)


def _generated(graph: OperatorGraph, region: Region, sms: int, template: str = "") -> Region:
    try:
        planned: Planned = plan_region(graph, region.nodes, template)
    except LoweringError as error:
        raise IllegalActionError(f"region {region.id} cannot be generated: {error}") from error
    kept = {FORMAT: region.parameters[FORMAT]} if FORMAT in region.parameters and FORMAT in planned.template.knobs else {}
    return Region(id=region.id, nodes=region.nodes, template=planned.template.name, parameters=planned.defaults(sms) | kept)


def _sms(action: Action) -> int:
    return int(action.parameters.get("sms", USUAL_SMS))
