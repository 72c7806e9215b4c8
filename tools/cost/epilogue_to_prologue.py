"""Work that moves to its reader: what a kernel spreads over many elements at its end may as well be made where these are read.

`x + u[:, None]` after a sum that gives `u` is as large as `x`: written and read again it passes twice, made where it is read not at all.
Booleans that a kernel would write as floats pass four times as many bytes each way as those that its reader makes floats of.
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.codegen import OperatorGraph, Region, Schedule
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Ref
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import can_generate, plan_region
from tools.codegen.templates.shared.template import Pattern
from tools.records import ITEM_BYTES, HardwareSheet

ROWS = "rows"
"""Template whose regions are looked at: tiles are cut where that gains (`fusion_plans`)."""
READERS = frozenset({"pointwise", ROWS, "tile"})
"""Templates whose regions make what they read once; a product would make it again for each of its tiles."""
WINDOWS = "pooling"
"""Template that makes what it reads once for each window: a conversion is little work."""
CASTS = frozenset({"to", "_to_copy"})
"""Operators that give a value another dtype."""


def moved_epilogues(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> Iterator[Schedule]:
    """Give the schedule once for each region of which another one can take the last pointwise operators, which spread what it makes."""
    home = {name: region for region in schedule.regions for name in region.nodes}
    for region in schedule.regions:
        if region.template != ROWS:
            continue
        for name in region.nodes:
            readers = _readers(graph, name)
            regions = {home[reader].id for reader in readers if reader in home}
            if not readers or len(regions) != 1 or region.id in regions:
                continue
            reader = home[readers[0]]
            moving = _spread(graph, region, name)
            if moving and reader.template in READERS and (pair := _moved(graph, region, reader, moving, sheet)):
                yield schedule.replaced(pair[0]).replaced(pair[1])


def moved_widenings(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> Iterator[Schedule]:
    """Give the schedule once for each conversion to a longer dtype that ends a region and that its only reader can make instead."""
    home = {name: region for region in schedule.regions for name in region.nodes}
    for region in schedule.regions:
        for name in region.nodes if region.is_generated and len(region.nodes) > 1 else ():
            regions = {home[reader].id for reader in _readers(graph, name) if reader in home}
            if not _widens(graph, region, name) or len(regions) != 1 or region.id in regions:
                continue
            reader = home[_readers(graph, name)[0]]
            takes = reader.template in READERS or reader.template == WINDOWS
            if takes and reader.is_generated and (pair := _moved(graph, region, reader, (name,), sheet)):
                yield schedule.replaced(pair[0]).replaced(pair[1])


def _widens(graph: OperatorGraph, region: Region, name: str) -> bool:
    node = graph.by_name[name]
    if node.op not in CASTS or not isinstance(node.args[0], Ref) or node.args[0].name not in region.nodes:
        return False
    return ITEM_BYTES[node.outputs[0].dtype] > ITEM_BYTES[graph.meta(node.args[0]).dtype]


def _readers(graph: OperatorGraph, name: str) -> tuple[str, ...]:
    """Name what reads a value, through views; nothing where forward returns it."""
    found: list[str] = []
    rest = [name]
    while rest:
        one = rest.pop()
        if any(ref.name == one for ref in graph.returned):
            return ()
        for node in graph.users.get(one, ()):
            (rest if is_view(node) else found).append(node.name)
    return tuple(dict.fromkeys(found))


def _spread(graph: OperatorGraph, region: Region, last: str) -> tuple[str, ...]:
    """Name the pointwise operators of a region that end with a value and serve nothing else, where it is larger than all that is left."""
    size = graph.meta(Ref(last)).numel
    found = {last}
    for name in reversed(region.nodes):
        alike = graph.meta(Ref(name)).numel == size and graph.order[name] < graph.order[last]
        if alike and set(_readers(graph, name)) <= found and _readers(graph, name):
            found.add(name)
    rest = [name for name in region.nodes if name not in found]
    read = {ref.name for name in found for ref in graph.by_name[name].refs}
    if not rest or not all(_is_elementwise(graph, name) for name in found):
        return ()
    kept = [name for name in rest if set(_readers(graph, name)) - set(rest) or name in read or not _readers(graph, name)]
    smaller = all(graph.meta(Ref(name)).numel < size for name in kept)
    return tuple(name for name in region.nodes if name in found) if smaller else ()


def _moved(
    graph: OperatorGraph, region: Region, reader: Region, moving: tuple[str, ...], sheet: HardwareSheet
) -> tuple[Region, Region] | None:
    rest = tuple(name for name in region.nodes if name not in moving)
    taken = tuple(sorted((*moving, *reader.nodes), key=graph.order.__getitem__))
    if not can_generate(graph, rest) or not can_generate(graph, taken):
        return None
    one, other = (plan_region(graph, nodes) for nodes in (rest, taken))
    return (
        region.model_copy(update={"nodes": rest, "template": one.template.name, "parameters": one.defaults(sheet.sms)}),
        reader.model_copy(update={"nodes": taken, "template": other.template.name, "parameters": other.defaults(sheet.sms)}),
    )


def _is_elementwise(graph: OperatorGraph, name: str) -> bool:
    try:
        return plan_region(graph, (name,)).template.pattern is Pattern.ELEMENTWISE
    except LoweringError:
        return False
