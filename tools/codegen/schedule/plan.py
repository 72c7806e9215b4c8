"""A set of operators as one kernel: lowered, with the template that lays it out, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Formula, Node, OperatorGraph, Ref
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.loop import has_step_number
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.ir.sizes import Fact, express, express_by, with_constants
from tools.codegen.ir.views import is_view
from tools.codegen.lower.positions.gathers import SOURCES
from tools.codegen.lower.rules import MOVING_RULES, RULES, lower, lower_general
from tools.codegen.rewrite.bind import bind
from tools.codegen.schedule.shape_witnesses import take_numbers, take_witnesses, told_sizes, unread_steps, unreadable_sizes
from tools.codegen.templates.registry import template_for
from tools.codegen.templates.shared.knob import Parameters, Settings
from tools.codegen.templates.shared.template import Template
from tools.records import HardwareSheet

TILE = "tile"
"""Template of regions that are lowered in the general form."""
SIZED = frozenset({"pointwise", "rows"})
"""Templates that need every size from the tensors that they read or as a number, and of which another, tiles, may take the region."""
_SMS = 132
"""Multiprocessors for which first values are chosen where any will do."""
MOST_NODES = 192
"""A region larger than this is split: one kernel would hold too many live values, and the search for regions would slow down."""


@dataclass(frozen=True)
class Planned:
    """A region that can be generated: its template and its lowered kernel."""

    template: Template
    kernel: Kernel

    def defaults(self, sms: int) -> Parameters:
        """Choose first parameters for a device of so many multiprocessors."""
        return self.template.defaults(self.kernel, sms)

    def fits(self, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
        """Whether changing `knob` to what `parameters` say changes the kernel and can run on the device."""
        return self.template.fits(self.kernel, parameters, knob, sheet)


@dataclass(frozen=True)
class LoweredRegion:
    """A generated region of a schedule, lowered."""

    graph: OperatorGraph
    """Whose nodes it is of: the reference's, or those of a loop's body."""
    region: Region
    kernel: Kernel


@dataclass(frozen=True)
class PlannedRegion:
    """The same with the template that lays it out."""

    graph: OperatorGraph
    region: Region
    planned: Planned


def plan_region(graph: OperatorGraph, members: Iterable[str], template: str = "") -> Planned:
    """Lower a set of nodes for a template, or for the one that takes it: tiles take what no other can. Raises LoweringError.

    The answer is kept with the graph, which is frozen: a choice asks about most sets several times.
    """
    plans: dict[tuple[frozenset[str], bool], Planned | str] = graph.__dict__.setdefault("_plans", {})
    asked = (frozenset(members), template == TILE)
    if asked not in plans:
        names = tuple(sorted(asked[0], key=lambda name: graph.order[name]))
        try:
            plans[asked] = _plan(graph, names, tiled=asked[1])
        except LoweringError as error:
            plans[asked] = str(error)
    found = plans[asked]
    if isinstance(found, str):
        raise LoweringError(found)
    return found


def _plan(graph: OperatorGraph, names: tuple[str, ...], *, tiled: bool) -> Planned:
    if not tiled and made_of_positions(graph, names):
        try:
            return choose_template(graph, lower_region(graph, names, TILE))
        except LoweringError:
            pass
    if not tiled:
        try:
            return choose_template(graph, lower_region(graph, names))
        except LoweringError as error:
            try:
                return choose_template(graph, lower_region(graph, names, TILE))
            except LoweringError as tiles:
                # what the templates before it say is about the operators; of tiles it is about axes, unless they alone know an operator
                alone = any(graph.by_name[name].op in MOVING_RULES.keys() - RULES.keys() for name in names)
                raise (tiles if alone else error) from None
    return choose_template(graph, lower_region(graph, names, TILE))


def lower_region(graph: OperatorGraph, members: Iterable[str], template: str = "") -> Kernel:
    """Lower a set of nodes into one kernel, of the general form where it is for tiles; raises LoweringError with the reason."""
    names = tuple(members)
    effects = [name for name in names if name in graph.effects]
    if effects:
        raise LoweringError("it writes to a part of an argument, or of a buffer of the module")
    if any(_counts_steps(graph, graph.by_name[name]) for name in names):
        raise LoweringError("it is given a number that is another one at every step of a loop")
    kernel = lower_general(graph, names) if template == TILE else _lowered(graph, names)
    if template == TILE:
        take_witnesses(graph, kernel, numbers=True)
        if kernel.then is not None:
            # the first kernel's host function calls the second's, and has no numbers for it
            take_witnesses(graph, kernel.then, numbers=False)
    if not kernel.builder.loads:
        raise LoweringError("it reads no tensor")
    return kernel


def _counts_steps(graph: OperatorGraph, node: Node) -> bool:
    """Whether a node of a loop's body, or a view through which it reads, is given a number that grows with the step."""
    if has_step_number((node.args, node.kwargs)):
        return True
    sources = (graph.by_name.get(ref.name) for ref in node.refs)
    return any(source is not None and is_view(source) and _counts_steps(graph, source) for source in sources)


def _lowered(graph: OperatorGraph, names: tuple[str, ...]) -> Kernel:
    """Lower with formulas in the kernel, where it reads any and a template can lay that out; else they are made before it."""
    if any(_is_formula(graph, ref) for name in names for ref in graph.by_name[name].refs):
        try:
            kernel = lower(graph, names, formulas=True)
            template_for(kernel)
        except LoweringError:
            pass
        else:
            # a tensor of positions that is read tells its size
            if not unreadable_sizes(kernel):
                return kernel
    return lower(graph, names)


def made_of_positions(graph: OperatorGraph, names: Iterable[str]) -> bool:
    """Whether nodes read nothing but positions and numbers, as a table of angles does: tiles make these on the way."""
    inside = frozenset(names)
    return all(ref.name in inside or _is_formula(graph, ref) for name in inside for ref in graph.by_name[name].refs)


def _is_formula(graph: OperatorGraph, ref: Ref) -> bool:
    """Whether a value, seen through views, is made of positions and numbers alone."""
    node = graph.by_name.get(ref.name)
    if node is None or not is_view(node) or fill_number(node) is not None:
        return False
    return isinstance(node, Formula) or node.op in SOURCES or any(_is_formula(graph, each) for each in node.refs)


def choose_template(graph: OperatorGraph, kernel: Kernel) -> Planned:
    """Choose the template that can lay a kernel out; raises LoweringError where none can."""
    planned = Planned(template_for(kernel), kernel)
    if planned.template.name in SIZED:
        take_numbers(graph, kernel)
    if planned.template.name not in (*SIZED, TILE) and _splits(kernel):
        # whether its host function can tell the parts is known when that is written
        try:
            planned.template.emit(kernel, "tried", planned.defaults(_SMS))
        except LoweringError:
            if not planned.template.takes_numbers:
                raise
            take_numbers(graph, kernel)
            planned.template.emit(kernel, "tried", planned.defaults(_SMS))
    _check_numbers(graph, planned)
    return planned


def _splits(kernel: Kernel) -> bool:
    """Whether a dimension of a tensor that the kernel reads is taken apart."""
    builder = kernel.builder
    return any(len(builder.atoms.leaves(dim)) > 1 for load in builder.loads for dim in load.dims)


def _check_numbers(graph: OperatorGraph, planned: Planned) -> None:
    """Make sure that numbers which vary with the sizes can be told: from what the kernel reads, or for some templates from any input."""
    builder = planned.kernel.builder
    facts = told_sizes(planned.kernel, graph.constants)
    hidden = [*unread_steps(planned.kernel), *(number.values for number in builder.arguments if express(number.values, facts) is None)]
    if hidden and not planned.template.takes_numbers:
        raise LoweringError("a number that varies with the sizes cannot be told from the shapes of what the kernel reads")
    for values in hidden:
        if values not in graph.readable_numbers:
            every = dict.fromkeys(sizes for meta in graph.inputs.values() for sizes in meta.shape)
            facts = with_constants([Fact("", sizes) for sizes in every], graph.constants)
            graph.readable_numbers[values] = express_by(values, facts, graph.attributes) is not None
        if not graph.readable_numbers[values]:
            raise LoweringError("a number that varies with the sizes cannot be told from the shapes of the inputs")


def is_writable(graph: OperatorGraph, schedule: Schedule) -> bool:
    """Whether every generated region of a schedule can be written with its template and its parameters, in the layouts that it says."""
    seen = bind(graph, schedule).laid_out
    for region in schedule.regions:
        if region.is_generated:
            try:
                planned = plan_region(seen, region.nodes, region.template)
            except LoweringError:
                return False
            if planned.template.name != region.template or planned.template.refusal(planned.kernel, region.parameters):
                return False
    return True


def can_generate(graph: OperatorGraph, members: Iterable[str]) -> bool:
    """Whether a set of nodes is one generated region: lowerable, and with nothing outside between its nodes."""
    return _planned(graph, members) is not None


def can_tile(graph: OperatorGraph, members: Iterable[str]) -> bool:
    """Whether tiles hold a set of nodes, which another template may hold as well."""
    return _planned(graph, members, TILE) is not None


def belong_together(graph: OperatorGraph, members: Iterable[str]) -> bool:
    """Whether a set of nodes is one natural region: one kernel that makes nothing twice, and moves elements where only tiles hold it."""
    names = frozenset(members)
    planned = _planned(graph, names)
    if planned is None or planned.template.name != TILE:
        return planned is not None and (len(names) == 1 or planned.template.is_plain(planned.kernel))
    moving = moves(planned.kernel) or any(moves_elements(graph, name) for name in names) or made_of_positions(graph, names)
    return planned.template.is_plain(planned.kernel) and (len(names) == 1 or moving)


def moves_elements(graph: OperatorGraph, name: str) -> bool:
    """Whether a node moves elements and computes nothing."""
    return graph.by_name[name].op in MOVING_RULES


def moves(kernel: Kernel) -> bool:
    """Whether a kernel reads or writes at positions that are expressions."""
    return any(expr.op == "read" for expr in kernel.builder.exprs) or any(output.scatter for output in kernel.outputs)


def _planned(graph: OperatorGraph, members: Iterable[str], template: str = "") -> Planned | None:
    names = frozenset(members)
    if len(names) > MOST_NODES or not is_convex(graph, names):
        return None
    try:
        return plan_region(graph, names, template)
    except LoweringError:
        return None


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
