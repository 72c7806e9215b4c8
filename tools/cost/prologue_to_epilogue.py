"""Work that moves between kernels: what a row kernel does to its input first may as well end the product or convolution before it.

A row that does not fit into registers is walked twice, and each walk would do that work again; the kernel before it does it once.
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.codegen import OperatorGraph, Region, Schedule
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.registry import template_called
from tools.codegen.templates.shared.template import Pattern
from tools.records import HardwareSheet


def moved_prologues(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> Iterator[Schedule]:
    """Give the schedule once for each row kernel whose first pointwise operators the kernel before it can take."""
    for place, region in enumerate(schedule.regions):
        if region.is_generated and template_called(region.template).pattern is Pattern.REDUCTION:
            prologue = _prologue(graph, region)
            before = _before(graph, schedule.regions[:place], prologue) if prologue else None
            pair = _moved(graph, before, region, prologue, sheet) if before else None
            if before and pair:
                yield schedule.replaced(pair[0]).replaced(pair[1])


def _prologue(graph: OperatorGraph, region: Region) -> tuple[str, ...]:
    """Name the operators at the start of a region that are pointwise by themselves, up to the first that is not; never all."""
    prologue: list[str] = []
    for name in region.nodes[:-1]:
        if name in graph.effects or not _is_elementwise(graph, name):
            break
        prologue.append(name)
    return tuple(prologue)


def _before(graph: OperatorGraph, earlier: tuple[Region, ...], prologue: tuple[str, ...]) -> Region | None:
    """Find the one region whose result the prologue starts from; None where it reads what is made between that region and it."""
    made = {name: place for place, region in enumerate(earlier) for name in region.nodes}
    places = {made[name] for name in _sources(graph, prologue) if name in made}
    if not places:
        return None
    last = earlier[max(places)]
    fusable = last.is_generated and template_called(last.template).pattern is Pattern.OUT_FUSABLE
    return last if fusable else None


def _sources(graph: OperatorGraph, names: tuple[str, ...]) -> set[str]:
    """Name the nodes that make what some operators read, through views."""
    found: set[str] = set()
    waiting = [ref.name for name in names for ref in graph.by_name[name].refs]
    while waiting:
        name = waiting.pop()
        node = graph.by_name.get(name)
        if node is not None and name not in names:
            if is_view(node):
                waiting += [ref.name for ref in node.refs]
            else:
                found.add(name)
    return found


def _moved(
    graph: OperatorGraph, before: Region, region: Region, prologue: tuple[str, ...], sheet: HardwareSheet
) -> tuple[Region, Region] | None:
    nodes, rest = (*before.nodes, *prologue), region.nodes[len(prologue) :]
    if not _plans(graph, nodes, before.template):
        return None
    try:
        planned = plan_region(graph, rest)
    except LoweringError:
        return None
    after = region.model_copy(update={"nodes": rest, "template": planned.template.name, "parameters": planned.defaults(sheet.sms)})
    return before.model_copy(update={"nodes": nodes}), after


def _plans(graph: OperatorGraph, names: tuple[str, ...], template: str) -> bool:
    try:
        return plan_region(graph, names, template).template.name == template
    except LoweringError:
        return False


def _is_elementwise(graph: OperatorGraph, name: str) -> bool:
    try:
        return plan_region(graph, (name,)).template.pattern is Pattern.ELEMENTWISE
    except LoweringError:
        return False
