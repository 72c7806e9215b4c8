"""Ways to divide a reference into kernels, as far as fusions reach: what is generated, what is merged, what stays with the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from tools.codegen import IllegalAction, OperatorGraph, Region, Schedule, apply, initial_schedule
from tools.codegen.schedule.cuts import cut, far_larger, made_again, read_loops, spread
from tools.codegen.schedule.options import fusions, stands_alone
from tools.codegen.schedule.partition import producers
from tools.codegen.schedule.plan import TILE, can_generate, can_tile
from tools.cost.epilogue_to_prologue import moved_epilogues, moved_widenings
from tools.cost.prologue_to_epilogue import moved_prologues
from tools.records import Action, ActionKind, HardwareSheet

MOST_MERGES = 32
"""Fusions of two regions that are looked at for one structure; each is lowered and modelled."""
MOST_CUTS = 8
"""Values of one region at which it is asked whether to cut it in two, those that are the most work to make again."""
MOST_LARGE = 2
"""Far larger results of one region of which the same is asked."""
MOST_SPREAD = 3
"""What one product's kernel spreads of which it is asked whether to make it once."""
MOST_TAKEN = 6
"""Products of one structure of which it is asked whether they are worth generating together with what follows them."""
UNSURE = 0.8
"""Part of two regions' time below which one takes their place that only reads alike, or that is tiles where they were not."""
INSTEAD = 0.85
"""Part of another template's time below which tiles take its place: of 143 choices that are tiles alone the mean took 1.18 times what was
modelled, of 54 that are rows or chains 1.05 times (docs/results/wild)."""
SPREAD = 0.9
"""The same below which what a kernel spreads is made where it is read: it is the same work. An assumption."""
ONCE = 0.95
"""Part of a product's kernel's time below which what it spreads over its tiles is made once, by another one. An assumption."""
RIVALS = frozenset({"pointwise", "rows"})
"""Templates whose regions tiles may hold."""

Judge = Callable[[OperatorGraph, Schedule], float]
"""Says how long a schedule takes, microseconds: its generated regions, or all of it."""
Changes = Callable[[OperatorGraph, Schedule, HardwareSheet], Iterator[Schedule]]
"""Gives a schedule with one thing changed, once for each such change."""
Prefer = Callable[[Region], bool]
"""Says of a generated region whether it, and not the library, should run it."""


def structures(
    graph: OperatorGraph,
    sheet: HardwareSheet,
    judge: Judge,
    prefer: Prefer,
    start: Schedule | None = None,
    left: frozenset[str] = frozenset(),
    whole: Judge | None = None,
) -> tuple[Schedule, ...]:
    """List schedules that differ in their regions, each with the coder's own first values.

    Everything that can be generated; the same less the products and convolutions that `prefer` leaves to the library; what stands around
    products and convolutions alone. Each first with the fusions and moves by which `judge` gains, then without. With `whole`, which times
    the library's calls, too, also those products that gain by what is fused to them, one after the other. None where nothing can be
    generated. All from the regions of `start`, the natural ones unless it is given; nodes that are `left` stay the library's.
    """
    start = start or initial_schedule(graph)
    able = [region.id for region in start.regions if not left & set(region.nodes) and can_generate(graph, region.nodes)]
    each_made = {region.id: region for region in _generated(graph, start, able, sheet).regions} if able else {}
    ours = [name for name in able if prefer(each_made[name])]
    alone = {name for name in able if stands_alone(graph, start, name)}
    around = [name for name in ours if name not in alone]
    found: dict[str, Schedule] = {}

    @cache
    def settled(names: tuple[str, ...]) -> Schedule:
        schedule = _generated(graph, start, names, sheet)
        # what is slow with its own template gains by a fusion that loses beside tiles: both ways are gone
        ways = (schedule, tiled) if (tiled := _tiled(graph, schedule, sheet, judge)) != schedule else (schedule,)
        fused = (_moved(graph, _merged(graph, way, sheet, judge), sheet, judge) for way in ways)
        best = min((_tiled(graph, one, sheet, judge) for one in fused), key=lambda one: judge(graph, one))
        apart = _cut(graph, best, sheet, judge)
        return _tiled(graph, _merged(graph, apart, sheet, judge), sheet, judge) if apart != best else best

    for names in ([name for name in able if name in alone or name in ours] or able, ours, around):
        if names:
            for schedule in (settled(tuple(names)), _generated(graph, start, names, sheet)):
                found.setdefault(schedule.model_dump_json(), schedule)
    if whole and ours:
        others = [name for name in able if name in alone and name not in ours]
        taken = _taken(ours, others, lambda names: settled(tuple(names)), lambda one: whole(graph, one))
        if taken:
            found.setdefault(taken.model_dump_json(), taken)
    return tuple(found.values())


def _taken(
    ours: list[str], others: list[str], settled: Callable[[list[str]], Schedule], whole: Callable[[Schedule], float]
) -> Schedule | None:
    """Generate those of the others, too, by which the whole gains: what is fused to them no longer passes through memory."""
    names, best = list(ours), None
    time = whole(settled(names))
    for name in others[:MOST_TAKEN]:
        changed = settled([*names, name])
        faster = whole(changed)
        if faster < time:
            names, time, best = [*names, name], faster, changed
    return best


def _generated(graph: OperatorGraph, schedule: Schedule, names: Sequence[str], sheet: HardwareSheet) -> Schedule:
    action = Action(kind=ActionKind.FUSION, region="+".join(names), parameters={"scope": "each", "sms": sheet.sms})
    return apply(graph, schedule, action)


def _moved(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet, judge: Judge) -> Schedule:
    """Move pointwise work from the start of row kernels to the end of those before them, then to its readers, where that is faster."""
    for changes in (moved_prologues, moved_widenings):
        schedule = _fastest(graph, schedule, sheet, judge, changes)
    for _ in schedule.regions:
        spread = [(judge(graph, changed), place, changed) for place, changed in enumerate(moved_epilogues(graph, schedule, sheet))]
        best = min(spread, default=None)
        if best is None or not _clearly_faster(graph, schedule, best[2], judge):
            break
        schedule = best[2]
    return schedule


def _fastest(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet, judge: Judge, changes: Changes) -> Schedule:
    """Make the change that gains most, again and again, as long as one gains."""
    time = judge(graph, schedule)
    for _ in schedule.regions:
        best = min(((judge(graph, each), place, each) for place, each in enumerate(changes(graph, schedule, sheet))), default=None)
        if best is None or best[0] >= time:
            break
        time, _, schedule = best
    return schedule


def _clearly_faster(graph: OperatorGraph, before: Schedule, after: Schedule, judge: Judge) -> bool:
    """Whether the regions in which two schedules differ are clearly faster in the second."""
    one, other = _differing(before, after)
    return judge(graph, other) < judge(graph, one) * SPREAD


def _merged(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet, judge: Judge) -> Schedule:
    """Take every fusion of generated regions that makes the schedule faster, the first one first."""
    looked: set[tuple[str, ...]] = set()
    again = True
    while again:
        again = False
        for action in fusions(graph, schedule, sheet):
            regions = [schedule.region(name) for name in action.region.split("+")]
            nodes = tuple(sorted(name for region in regions if region for name in region.nodes))
            if nodes in looked or len(looked) >= MOST_MERGES or not all(region and region.is_generated for region in regions):
                continue
            looked.add(nodes)
            try:
                changed = apply(graph, schedule, action)
            except IllegalAction:
                continue
            feed = _feed(graph, [region for region in regions if region])
            gaining = (one for one in _as_tiles_too(graph, schedule, changed, sheet) if _gains(graph, schedule, one, judge, feed))
            best = min(gaining, key=lambda one: judge(graph, one), default=None)
            if best is not None:
                schedule, again = best, True
                break
    return schedule


def _as_tiles_too(graph: OperatorGraph, before: Schedule, after: Schedule, sheet: HardwareSheet) -> Iterator[Schedule]:
    """Yield a schedule with one region in the place of several, and with tiles for it where one of them was tiles."""
    yield after
    had, made = _differing(before, after)
    for region in made.regions:
        if region.template in RIVALS and any(one.template == TILE for one in had.regions) and can_tile(graph, region.nodes):
            action = Action(kind=ActionKind.ALGORITHM, region=region.id, parameters={"implementation": TILE, "sms": sheet.sms})
            yield apply(graph, after, action)


def _gains(graph: OperatorGraph, before: Schedule, after: Schedule, judge: Judge, feed: bool) -> bool:
    sure = feed and not _new_tiles(before, after)
    one, other = (judge(graph, each) for each in _differing(before, after))
    return other < one * (1.0 if sure else UNSURE)


def _feed(graph: OperatorGraph, regions: Sequence[Region]) -> bool:
    """Whether one of some regions reads what another one makes: otherwise it is its operands alone that are read once."""
    made = {name: region.id for region in regions for name in region.nodes}
    return any(
        made.get(source, region.id) != region.id
        for region in regions
        for name in region.nodes
        for source in producers(graph, graph.by_name[name])
    )


def _cut(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet, judge: Judge) -> Schedule:
    """Cut regions in two where that is clearly faster: tiles at what is made for several places or is far larger, others after loops.

    What a product's kernel spreads over its tiles may be made once, before it.
    """
    known: set[tuple[str, ...]] = set()
    while rest := [region for region in schedule.regions if region.is_generated and region.nodes not in known]:
        known.add(rest[0].nodes)
        names = read_loops(graph, rest[0])
        if rest[0].template == TILE:
            names = (*made_again(graph, rest[0])[:MOST_CUTS], *far_larger(graph, rest[0])[:MOST_LARGE])
        few = spread(graph, rest[0])[:MOST_SPREAD]
        tried = (cut(graph, schedule, rest[0], name, sheet.sms) for name in dict.fromkeys((*names, *few)))
        best = min((one for one in tried if one), key=lambda one: judge(graph, one), default=schedule)
        before, after = (judge(graph, one) for one in _differing(schedule, best))
        schedule = best if after < before * (UNSURE if names else ONCE) else schedule
    return schedule


def _differing(before: Schedule, after: Schedule) -> tuple[Schedule, Schedule]:
    """Take of two schedules the regions that the other one has not: what is clearly faster is so whatever else a schedule does."""
    both = {region.nodes for region in before.regions} & {region.nodes for region in after.regions}
    one, other = (each.model_copy(update={"regions": tuple(r for r in each.regions if r.nodes not in both)}) for each in (before, after))
    return one, other


def _new_tiles(before: Schedule, after: Schedule) -> bool:
    """Whether tiles take what another template had."""
    had = {name for region in before.regions if region.template == TILE for name in region.nodes}
    return any(region.template == TILE and not had >= set(region.nodes) for region in after.regions)


def _tiled(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet, judge: Judge) -> Schedule:
    """Give regions to tiles where that makes them clearly faster; `judge` times their kernels, none of which is shorter than a launch."""
    for region in schedule.regions:
        if region.template not in RIVALS:
            continue
        before = judge(graph, schedule.model_copy(update={"regions": (region,)}))
        # tiles are a launch as well: no look at them tells that they take less than any
        if before * INSTEAD > sheet.launch_us and can_tile(graph, region.nodes):
            action = Action(kind=ActionKind.ALGORITHM, region=region.id, parameters={"implementation": TILE, "sms": sheet.sms})
            changed = apply(graph, schedule, action)
            made = tuple(one for one in changed.regions if one.id == region.id)
            after = judge(graph, changed.model_copy(update={"regions": made}))
            schedule = changed if after < before * INSTEAD else schedule
    return schedule
