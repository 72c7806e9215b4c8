"""Emit a schedule as one Python file: kernels, host functions, and a `ModelNew` that takes the reference's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.schedule import EPILOGUE, Region, Schedule
from tools.codegen.module.cuda_graph import captured
from tools.codegen.module.cudnn_fusion import HELPER
from tools.codegen.module.dedup import Functions
from tools.codegen.module.forward import ForwardText, class_text
from tools.codegen.module.function_names import function_name
from tools.codegen.module.reference_text import KeptText, keep
from tools.codegen.rewrite.bind import BoundGraph, bind
from tools.codegen.schedule.limits import limits
from tools.codegen.schedule.partition import ATTENTION, CONVOLUTION, DEPTHWISE, MATMUL, POINTWISE, POOLING, ROWS, plan_region
from tools.codegen.templates.attention import emit as template_attention
from tools.codegen.templates.convolution import emit as template_convolution
from tools.codegen.templates.depthwise import emit as template_depthwise
from tools.codegen.templates.device.library import LIBRARY_HELPERS
from tools.codegen.templates.device.math import HELPERS
from tools.codegen.templates.matmul import emit as template_matmul
from tools.codegen.templates.pointwise import emit as template_pointwise
from tools.codegen.templates.pooling import emit as template_pooling
from tools.codegen.templates.rows import emit as template_rows
from tools.codegen.templates.shared.frame import Parameters, RegionText
from tools.codegen.templates.shared.naming import Names
from tools.codegen.templates.shared.prepack import VERSIONS, refuse_clash
from tools.records import Problem, ProblemForm, Record

Emitter = Callable[[Kernel, str, Parameters], RegionText]


class Emission(Record):
    """A source and what is to be said about it."""

    source: str
    notes: tuple[str, ...] = ()
    """Which operators were left to the library, and other remarks, one sentence each."""


def emit(problem: Problem, graph: OperatorGraph, schedule: Schedule) -> Emission:
    """Write the source of `schedule`; raises LoweringError where a size it needs cannot be told at run time."""
    from tools.codegen.module.passthrough import verbatim

    if graph.blocked:
        source = verbatim(problem, graph)
        notes = tuple(f"Left to the reference: {reason}." for reason in graph.blocked)
        return Emission(source=captured(source) if schedule.captured else source, notes=notes)
    bound = bind(graph, schedule)
    graph, seen = bound.rewritten, bound.laid_out
    kept = keep(problem) if problem.form is ProblemForm.KERNELBENCH else None
    names = Names({*(kept.names if kept else ()), "ModelNew", "F", "torch", "nn"})
    functions = Functions()
    generated = {region.id: _region(seen, region, names, functions) for region in schedule.regions if region.is_generated}
    forward = ForwardText(seen, problem, frozenset({*names.taken}))
    lines = forward.write(schedule, generated)
    if forward.packing.packs:
        refuse_clash(problem.source)
    text = class_text(problem, graph, kept, lines, forward.packing)
    source = functions.told(_assemble(problem, schedule, graph, kept, list(generated.values()), text))
    return Emission(source=captured(source) if schedule.captured else source, notes=_notes(bound))


def emitters() -> dict[str, Emitter]:
    """Return the templates by name."""
    return {
        POINTWISE: template_pointwise.emit,
        ROWS: template_rows.emit,
        MATMUL: template_matmul.emit,
        ATTENTION: template_attention.emit,
        CONVOLUTION: template_convolution.emit,
        DEPTHWISE: template_depthwise.emit,
        POOLING: template_pooling.emit,
    }


def _region(graph: OperatorGraph, region: Region, names: Names, functions: Functions) -> RegionText:
    planned = plan_region(graph, region.nodes)
    if planned.template != region.template:
        raise LoweringError(f"region {region.id} is a {planned.template} region, not {region.template}")
    nodes = [graph.by_name[node] for node in region.nodes]
    before = set(names.taken)
    name = names.fresh("attention") if planned.template == ATTENTION else function_name(nodes, names)
    names.fresh(f"{name}_kernel")
    text = functions.shared(emitters()[region.template](planned.kernel, name, region.parameters))
    if not text.source:
        # written before: its names are free again
        names.taken = before
    return text


def _assemble(
    problem: Problem, schedule: Schedule, graph: OperatorGraph, kept: KeptText | None, regions: Sequence[RegionText], model: str
) -> str:
    helpers = dict.fromkeys(helper for region in regions for helper in region.helpers)
    if graph.prepacked or any(region.pack for region in regions):
        helpers[VERSIONS] = None
    helpers |= dict.fromkeys(node.op for node in graph.prepacked if node.op in LIBRARY_HELPERS)
    if any(EPILOGUE in region.parameters for region in schedule.regions):
        helpers[HELPER] = None
    body = "\n\n\n".join(
        part.strip("\n")
        for part in ([kept.module] if kept else [])
        + [HELPERS[helper] for helper in helpers]
        + [region.source for region in regions]
        + [model]
        if part
    )
    imports = ["import torch", "import torch.nn.functional as F"] if "F." in body else ["import torch"]
    imports += ["import triton", "import triton.language as tl"] if regions else []
    imports += ["from torch import nn"]
    imports += ["from triton.tools.tensor_descriptor import TensorDescriptor"] if "TensorDescriptor(" in body else []
    imports += [line for line in (kept.imports if kept else ()) if line not in imports]
    return f'"""{docstring(problem, graph, schedule)}"""\n\n' + "\n".join(imports) + "\n\n\n" + body + "\n"


def docstring(problem: Problem, graph: OperatorGraph, schedule: Schedule) -> str:
    """Say what the file computes, at which sizes it was written, and what it leaves to the library."""
    abi = problem.abi
    shapes = ", ".join(f"{spec.name} {list(spec.shape)} {spec.dtype}" for spec in abi.inputs)
    results = ", ".join(f"{spec.name} {list(spec.shape)} {spec.dtype}" for spec in abi.outputs)
    flops = problem.work.matmul_flops + problem.work.pointwise_flops
    lines = [
        f"{problem.name}: {', '.join(dict.fromkeys(node.op for node in graph.nodes))}.",
        "",
        f"As written: {shapes} -> {results}.",
        f"Must move {abi.compulsory_bytes:,} bytes and do at least {flops:,} operations; sizes and strides are read at run time.",
    ]
    left = left_to_library(graph, schedule)
    if left:
        lines.append(f"Left to the library: {', '.join(left)}.")
    return "\n".join(lines) + "\n"


def left_to_library(graph: OperatorGraph, schedule: Schedule) -> tuple[str, ...]:
    """List the operators that no generated region runs, without repeats."""
    return tuple(
        dict.fromkeys(graph.by_name[name].target for region in schedule.regions if not region.is_generated for name in region.nodes)
    )


def _notes(bound: BoundGraph) -> tuple[str, ...]:
    graph, schedule = bound.rewritten, bound.schedule
    left = set(left_to_library(graph, schedule))
    notes = [f"{limit.operator} is left to the library: {limit.reason}." for limit in limits(graph) if limit.operator in left]
    if bound.laid_out.returned != graph.returned:
        notes.append("Results may lie with their channels last: same shapes and values as the reference's, other strides.")
    if schedule.reduction_pushdown:
        notes.append("A sum is taken before its product: equal for finite values whose partial results stay in range.")
    if schedule.folded_batch_norms:
        notes.append("Batch norm is folded into weights: equal for finite values whose partial results stay in range.")
    if graph.prepacked:
        notes.append(f"Made of parameters once for all calls, in `pack_weights`: {', '.join(node.name for node in graph.prepacked)}.")
    if graph.traces == 1:
        notes.append("The problem has no sizes that can be varied: constants of its shapes are literals.")
    return tuple(notes)
