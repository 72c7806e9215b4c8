"""Which operators can share a kernel, and the partition of a graph into natural regions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.operators import ATTENTIONS, CONVOLUTIONS, EITHER_LAYOUT, POOLINGS, PRODUCTS
from tools.codegen.ir.schedule import EPILOGUE, FORMAT, Region, Schedule
from tools.codegen.ir.sizes import Fact, express
from tools.codegen.ir.views import is_view
from tools.codegen.lower.pooling import overlap
from tools.codegen.lower.rules import lower
from tools.codegen.templates.registry import knobs_of, template_for
from tools.codegen.templates.shared.knob import Parameters, Value
from tools.codegen.templates.shared.template import Template
from tools.records import HardwareSheet

STANDING_ALONE = {*PRODUCTS, *ATTENTIONS, *CONVOLUTIONS}
"""Operators that natural regions do not join to others: whether to fuse around them is an action, the library is often faster."""
MOST_NODES = 48
"""A region larger than this is split: one kernel would hold too many live values, and the search for regions would slow down."""


MOST_AGAIN = 4
"""How often a pooling may make an element again that comes from pointwise operators before it: up to a window of 3x3 with a stride of 2."""


@dataclass(frozen=True)
class Planned:
    """A region that can be generated: its template and its lowered kernel."""

    template: Template
    kernel: Kernel

    def defaults(self, sms: int) -> Parameters:
        """Choose first parameters for a device of so many multiprocessors."""
        return self.template.defaults(self.kernel, sms)

    def fits(self, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
        """Whether changing `knob` to what `parameters` say changes the kernel and can run on the device."""
        return self.template.fits(self.kernel, parameters, knob, sheet)


@dataclass(frozen=True)
class LoweredRegion:
    """A generated region of a schedule, lowered."""

    region: Region
    kernel: Kernel


@dataclass(frozen=True)
class PlannedRegion:
    """The same with the template that lays it out."""

    region: Region
    planned: Planned


def plan_region(graph: OperatorGraph, members: Iterable[str]) -> Planned:
    """Lower a set of nodes and choose the template; raises LoweringError with the reason."""
    return choose_template(graph, lower_region(graph, members))


def lower_region(graph: OperatorGraph, members: Iterable[str]) -> Kernel:
    """Lower a set of nodes into one kernel; raises LoweringError with the reason."""
    names = tuple(members)
    effects = [name for name in names if name in graph.effects]
    if effects:
        raise LoweringError("it writes to a buffer of the module")
    kernel = lower(graph, names)
    if not kernel.builder.loads:
        raise LoweringError("it reads no tensor")
    return kernel


def choose_template(graph: OperatorGraph, kernel: Kernel) -> Planned:
    """Choose the template that can lay a kernel out; raises LoweringError where none can."""
    planned = Planned(template_for(kernel), kernel)
    _check_numbers(graph, planned)
    return planned


def _check_numbers(graph: OperatorGraph, planned: Planned) -> None:
    """Make sure that numbers which vary with the sizes can be told: from what the kernel reads, or for some templates from any input."""
    builder = planned.kernel.builder
    facts = [Fact("", sizes) for load in builder.loads for sizes in load.meta.shape]
    hidden = [number.values for number in builder.arguments if express(number.values, facts) is None]
    if hidden and not planned.template.takes_numbers:
        raise LoweringError("a number that varies with the sizes cannot be told from the shapes of what the kernel reads")
    for values in hidden:
        if values not in graph.told:
            every = dict.fromkeys(sizes for meta in graph.inputs.values() for sizes in meta.shape)
            graph.told[values] = express(values, [Fact("", sizes) for sizes in every]) is not None
        if not graph.told[values]:
            raise LoweringError("a number that varies with the sizes cannot be told from the shapes of the inputs")


def can_generate(graph: OperatorGraph, members: Iterable[str]) -> bool:
    """Whether a set of nodes is one generated region: lowerable, and with nothing outside between its nodes."""
    names = frozenset(members)
    if len(names) > MOST_NODES or not is_convex(graph, names):
        return False
    try:
        plan_region(graph, names)
    except LoweringError:
        return False
    return True


def is_convex(graph: OperatorGraph, members: frozenset[str]) -> bool:
    """Whether no path leaves the set and comes back."""
    last = max(graph.order[name] for name in members)
    first = min(graph.order[name] for name in members)
    tainted: set[str] = set()
    for node in graph.nodes[first : last + 1]:
        sources = {ref.name for ref in node.refs}
        if node.name in members:
            if sources & tainted:
                return False
        elif sources & (members | tainted) and not (is_view(node) and not sources & tainted):
            tainted.add(node.name)
    return True


def has_convolution(graph: OperatorGraph, region: Region) -> bool:
    """Whether a region is a library call, or a dense convolution of ours, with a layout to choose."""
    return (
        FORMAT in knobs_of(region.template)
        and EPILOGUE not in region.parameters
        and any(graph.by_name[name].op in EITHER_LAYOUT for name in region.nodes)
    )


def natural_regions(graph: OperatorGraph) -> Schedule:
    """Partition the graph greedily: each operator joins the regions that feed it where one kernel can hold them all.

    Matrix products stand alone; whether to fuse their epilogue is an action, because the library's product is often faster.
    """
    groups: list[list[str]] = []
    home: dict[str, int] = {}
    sources: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        if is_view(node):
            continue
        sources[node.name] = producers(graph, node)
        place = _join(graph, node, groups, home, sources)
        if place is None:
            groups.append([node.name])
            place = len(groups) - 1
        for name in groups[place]:
            home[name] = place
    return Schedule(regions=ordered(graph, [tuple(group) for group in groups if group]))


def _join(
    graph: OperatorGraph, node: Node, groups: list[list[str]], home: dict[str, int], sources: dict[str, tuple[str, ...]]
) -> int | None:
    if node.op in STANDING_ALONE or node.name in graph.effects:
        return None
    if node.op in POOLINGS and overlap(node) > MOST_AGAIN:
        return None
    feeders = sorted({home[name] for name in sources[node.name]}, reverse=True)
    joinable = [place for place in feeders if not _stands_alone(graph, groups[place])]
    while joinable:
        merged = [name for place in sorted(joinable) for name in groups[place]]
        if not _in_a_circle(groups, home, sources, {*merged, node.name}) and can_generate(graph, [*merged, node.name]):
            target = min(joinable)
            for place in joinable:
                if place != target:
                    groups[place] = []
            groups[target] = sorted([*merged, node.name], key=lambda name: graph.order[name])
            return target
        joinable = joinable[:-1] if len(joinable) > 1 else []
    return None


def _in_a_circle(groups: list[list[str]], home: dict[str, int], sources: dict[str, tuple[str, ...]], members: set[str]) -> bool:
    """Whether nodes, taken as one region, would need a region that needs them."""
    rest = [source for name in members for source in sources[name] if source not in members]
    seen: set[int] = set()
    while rest:
        place = home[rest.pop()]
        if place in seen:
            continue
        seen.add(place)
        for name in groups[place]:
            for source in sources[name]:
                if source in members:
                    return True
                rest.append(source)
    return False


def _stands_alone(graph: OperatorGraph, group: Sequence[str]) -> bool:
    return any(graph.by_name[name].op in STANDING_ALONE for name in group) or not can_generate(graph, group)


def producers(graph: OperatorGraph, node: Node) -> tuple[str, ...]:
    """Name the nodes that feed `node`, seen through views, each once and in the order of its operands."""
    return tuple(dict.fromkeys(name for ref in node.refs for name in producers_of(graph, ref)))


def producers_of(graph: OperatorGraph, ref: object) -> tuple[str, ...]:
    """Name the nodes that make one value, seen through views."""
    source = graph.by_name.get(ref.name) if isinstance(ref, Ref) else None
    if source is None:
        return ()
    return producers(graph, source) if is_view(source) else (source.name,)


def ordered(graph: OperatorGraph, groups: Sequence[tuple[str, ...]]) -> tuple[Region, ...]:
    """Order groups so that each comes after those it reads, and number them; parameters are left empty."""
    home = {name: place for place, group in enumerate(groups) for name in group}
    needs = [
        {home[source] for name in group for source in producers(graph, graph.by_name[name])} - {place} for place, group in enumerate(groups)
    ]
    effects = [place for place, group in enumerate(groups) if any(name in graph.effects for name in group)]
    done: list[int] = []
    rest = sorted(range(len(groups)), key=lambda place: min(graph.order[name] for name in groups[place]))
    while rest:
        free = [place for place in rest if needs[place] <= set(done)]
        if not free:
            raise LoweringError("regions read each other in a circle")
        chosen = next((place for place in free if place in effects), free[0])
        done.append(chosen)
        rest.remove(chosen)
    return tuple(Region(id=f"r{number}", nodes=groups[place]) for number, place in enumerate(done))
