"""What the generator makes of an operator, stage by stage: from the traced graph to the emitted kernels. Nothing is run or timed."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from graphs.run.assembly import resolve_target
from kernelwright.api.explanation import EmittedFunction, ExplainedRegion, Explanation, LeftOperators, ModelledLaunch, Operator, Rewriting
from tools.codegen import IllegalAction, LoweringError, OperatorGraph, Region, apply, initial_schedule, limits
from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.schedule import INSIDE, STEPS
from tools.codegen.ir.views import is_view
from tools.codegen.module.emit import emit_regions
from tools.codegen.module.link import Emission, link
from tools.codegen.module.passthrough import pass_through
from tools.codegen.pipeline import lay_out, lower, rewrite, trace_rewritten
from tools.codegen.rewrite.bind import BoundGraph
from tools.codegen.schedule.bodies import loop_of
from tools.codegen.schedule.plan import PlannedRegion
from tools.codegen.templates.shared.frame import RegionText
from tools.cost.choice import Choice
from tools.cost.launch_time import launch_time_us
from tools.cost.launches import region_launches
from tools.cost.rank_schedules import modelled_choices
from tools.cost.schedule_model import ScheduleModel
from tools.errors import UserError
from tools.problems import load_problem
from tools.records import DEFAULT_POLICY, Action, ActionKind, HardwareSheet, PrecisionPolicy, Problem


def explain(
    problem: str | Path, *, target: str = "", policy: PrecisionPolicy = DEFAULT_POLICY, entry: str | None = None, choice: int = 1
) -> Explanation:
    """Explain the cost model's choice of that number on a device, or with 0 the initial schedule, which generates nothing.

    Raises UserError for wrong input.
    """
    sheet = resolve_target(target)
    loaded = load_problem(Path(problem), policy, entry)
    traced = trace_rewritten(loaded)
    graph = traced.graph
    choices = () if choice == 0 else modelled_choices(graph, sheet, loaded.policy)
    if choice > max(1, len(choices)):
        raise UserError(f"The cost model has no choice {choice}.", f"It has {len(choices)}: give --choice a number from 1 to that.")
    chosen = choices[choice - 1] if choices else None
    schedule = chosen.schedule if chosen else initial_schedule(graph)
    return _Explainer(loaded, rewrite(graph, schedule), sheet, chosen).explain(
        _title(graph, f"choice {choice} of {len(choices)}" if chosen else ""),
        [Rewriting(by="canonical form", node=one.node, operator=one.operator, became=one.became) for one in traced.applied],
    )


def _title(graph: OperatorGraph, choice: str) -> str:
    if graph.blocked:
        return "the reference itself: nothing of it can be generated"
    return f"the cost model's {choice}" if choice else "the initial schedule, which leaves every region to the library"


KERNELS = "a loop of Python that launches the kernels of its body"
"""What is said of such a loop before the reason."""
STEP_BY_STEP = "faster so by the cost model (estimated)"
"""The reason where a kernel could hold the loop."""


class _Explainer:
    """One problem under one schedule."""

    def __init__(self, problem: Problem, bound: BoundGraph, sheet: HardwareSheet, chosen: Choice | None) -> None:
        self.problem, self.bound, self.sheet, self.chosen = problem, bound, sheet, chosen
        self.model = ScheduleModel(bound.laid_out, sheet, problem.policy)
        self.planned: tuple[PlannedRegion, ...] = () if bound.reference.blocked else lay_out(lower(bound))

    def explain(self, title: str, rewrites: list[Rewriting]) -> Explanation:
        """Gather all stages."""
        emission, texts = self._emission()
        return Explanation(
            problem=self.problem.name,
            target=self.sheet.title,
            policy=str(self.problem.policy),
            explained=title,
            us=_finite(self.chosen.us if self.chosen else self.model.schedule_us(self.bound.schedule)) or None,
            graph=tuple(map(_operator, self.bound.reference.nodes)),
            rewrites=(*rewrites, *self._rewrites()),
            regions=tuple(self._regions(self.model, self.bound.schedule.regions)),
            captured=self.bound.schedule.captured,
            launches=tuple(self._launches()),
            kernels=tuple(_functions(emission.source, texts)),
            library=tuple(self._left()),
            notes=emission.notes,
            source=emission.source,
        )

    def _emission(self) -> tuple[Emission, Mapping[str, RegionText]]:
        """Write the file, and the text of each region."""
        if self.bound.reference.blocked:
            return pass_through(self.problem, self.bound.reference, self.bound.schedule), {}
        try:
            emitted = emit_regions(self.problem, self.bound, self.planned)
            return link(self.problem, self.bound, emitted), emitted.texts
        except LoweringError as error:
            what = f"The built-in coder cannot write {self.problem.name}: {error}."
            raise UserError(
                what, "Let what differs between sizes follow from the shapes of tensors, or be the same at every size."
            ) from error

    def _rewrites(self) -> Iterator[Rewriting]:
        """Yield what the schedule asks for, by the nodes that it names."""
        schedule, nodes = self.bound.schedule, self.bound.reference.by_name
        named = (
            ("batch norm folded", schedule.folded_batch_norms, ("its product with folded weights",)),
            ("reduction pushed down", schedule.reduction_pushdown, ("reduction of an operand, then a smaller product",)),
            ("bias taken out", schedule.separate_biases, ("the convolution without it, and an addition",)),
            ("statistics taken out", schedule.separate_statistics, ("the batch's statistics, and pointwise operators",)),
            ("joined in place", schedule.joined_in_place, ("pieces that convolutions write into the whole",)),
            ("sum filled up", schedule.padded_sums, ("zeros behind both operands' rows, and the product",)),
            ("addition sorted", schedule.sorted_additions, ("a sort of its index, and the addition in that order",)),
            ("made again", tuple(dict.fromkeys(node for node, *_ in schedule.recomputed)), ("a copy in each kernel that reads it",)),
            ("constant folded", schedule.prepacked, ("pack_weights, once for all calls",)),
        )
        for by, names, became in named:
            for name in names:
                yield Rewriting(by=by, node=name, operator=nodes[name].op if name in nodes else "", became=became)
        laid_out = {node.name: node for node in self.bound.laid_out.nodes}
        for node in self.bound.rewritten.nodes:
            if laid_out[node.name].outputs != node.outputs:
                yield Rewriting(by="channels last", node=node.name, operator=node.op, became=(f"{node.op} of rows of channels",))

    def _regions(self, model: ScheduleModel, regions: tuple[Region, ...], place: str = "", steps: int = 1) -> Iterator[ExplainedRegion]:
        """Yield regions, behind a loop those of its body with the time of all steps."""
        for region in regions:
            yield ExplainedRegion(
                id=f"{place}{region.id}",
                template=STEPS if region.body else region.template,
                operators=tuple(model.graph.by_name[name].op for name in region.nodes),
                nodes=region.nodes,
                parameters=region.parameters,
                us=_finite(steps * model.region_us(region)) or None,
            )
            loop, inside = (loop_of(model.graph, region), model.of_body(region)) if region.body else (None, None)
            if loop and inside:
                yield from self._regions(inside, region.body, f"{place}{region.id}{INSIDE}", steps * loop.steps[0])

    def _launches(self) -> Iterator[ModelledLaunch]:
        for each in self.planned:
            for work in region_launches(each.planned, each.region.parameters, self.sheet):
                yield ModelledLaunch(
                    region=each.region.id,
                    programs=work.programs,
                    warps=work.warps,
                    dram_bytes=round(work.dram_bytes),
                    flops=round(work.product_flops),
                    us=max(self.sheet.launch_us, launch_time_us(work, self.sheet)),
                )

    def _left(self) -> Iterator[LeftOperators]:
        """Yield what the library runs: operators that cannot be generated with the reason, the others with how the model weighs them."""
        for reason in self.bound.reference.blocked:
            yield LeftOperators(region="", operators=("everything",), reason=reason)
        cannot = {limit.node: limit.reason for limit in limits(self.bound.laid_out)}
        for region in self.bound.schedule.regions:
            if not region.is_generated:
                nodes = [self.bound.rewritten.by_name[name] for name in region.nodes]
                weighed = "" if region.body or all(node.name in cannot for node in nodes) else self._weighed(region)
                reasons = {node.name: cannot.get(node.name, weighed or STEP_BY_STEP) for node in nodes}
                for reason in dict.fromkeys(reasons.values()):
                    operators = tuple(node.target for node in nodes if reasons[node.name] == reason)
                    yield LeftOperators(region=region.id, operators=operators, reason=f"{KERNELS}: {reason}" if region.body else reason)

    def _weighed(self, region: Region) -> str:
        """Say what the model expects of the library and of a kernel of ours."""
        several = len(region.nodes) > 1
        action = Action(
            kind=ActionKind.FUSION if several else ActionKind.ALGORITHM,
            region=region.id,
            parameters={"scope": "each"} if several else {"implementation": "generated"},
        )
        try:
            changed = apply(self.bound.reference, self.bound.schedule, action)
        except (IllegalAction, LoweringError) as error:
            return str(error)
        library, own = self.model.region_us(region), self.model.glance(self.bound.rewritten, changed)
        own -= self.model.glance(self.bound.rewritten, self.bound.schedule)
        if not math.isfinite(own):
            return "it can be generated; the cost model knows nothing of that kernel"
        said = f"it can be generated: about {own:.0f} µs against the library's {library:.0f} µs (estimated)"
        doubt = self.model.doubt(region)
        return f"{said}, and ours may take {doubt:g} times as long as modelled" if doubt > 1 else said


def _operator(node: Node) -> Operator:
    reads = tuple(_value(ref) for ref in node.refs)
    return Operator(name=node.name, operator=node.target, reads=reads, results=tuple(map(_shape, node.outputs)), is_view=is_view(node))


def _value(ref: Ref) -> str:
    return f"{ref.name}[{ref.index}]" if ref.index else ref.name


def _shape(meta: TensorMeta) -> str:
    return f"{meta.dtype}{list(meta.written)}"


def _finite(us: float | None) -> float | None:
    return us if us is not None and math.isfinite(us) else None


def _functions(source: str, texts: Mapping[str, RegionText]) -> Iterator[EmittedFunction]:
    """Yield the functions and classes of an emitted file in order."""
    owners = {
        node.name: region for region, text in texts.items() for node in ast.parse(text.source).body if isinstance(node, ast.FunctionDef)
    }
    tree = ast.parse(source)
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    launched = {call.value.id for call in calls if isinstance(call, ast.Subscript) and isinstance(call.value, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            jitted = any(ast.unparse(each) == "triton.jit" for each in node.decorator_list)
            kind = "module" if isinstance(node, ast.ClassDef) else "device function" if jitted else "host function"
            kind = "kernel" if node.name in launched else kind
            yield EmittedFunction(
                name=node.name, kind=kind, region=owners.get(node.name, ""), line=first, lines=(node.end_lineno or first) - first + 1
            )
