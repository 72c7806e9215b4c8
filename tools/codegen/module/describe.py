"""What an emitted file says of itself, and what is to be said beside it."""

from __future__ import annotations

from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.rewrite.bind import BoundGraph
from tools.codegen.schedule.bodies import left_nodes
from tools.codegen.schedule.limits import limits
from tools.records import Problem


def docstring(problem: Problem, bound: BoundGraph) -> str:
    """Say what the file computes, at which sizes it was written, and what it leaves to the library."""
    abi, graph = problem.abi, bound.rewritten
    shapes = ", ".join(f"{spec.name} {list(spec.shape)} {spec.dtype}" for spec in abi.inputs)
    results = ", ".join(f"{spec.name} {list(spec.shape)} {spec.dtype}" for spec in abi.outputs)
    flops = problem.work.matmul_flops + problem.work.pointwise_flops
    lines = [
        f"{problem.name}: {', '.join(dict.fromkeys(node.op for node in graph.nodes))}.",
        "",
        f"As written: {shapes} -> {results}.",
        f"Must move {abi.compulsory_bytes:,} bytes and do at least {flops:,} operations; sizes and strides are read at run time.",
    ]
    left = left_to_library(graph, bound.schedule)
    if left:
        lines.append(f"Left to the library: {', '.join(left)}.")
    return "\n".join(lines) + "\n"


def left_to_library(graph: OperatorGraph, schedule: Schedule) -> tuple[str, ...]:
    """List the operators that no generated region runs, without repeats."""
    return tuple(dict.fromkeys(node.target for node in left_nodes(graph, schedule.regions) if not is_view(node)))


def notes(bound: BoundGraph) -> tuple[str, ...]:
    """Say which operators were left to the library and why, and what a schedule's rewritings assume, one sentence each."""
    graph, schedule = bound.rewritten, bound.schedule
    left = set(left_to_library(graph, schedule))
    said = [f"{limit.operator} is left to the library: {limit.reason}." for limit in limits(graph) if limit.operator in left]
    for region in schedule.regions:
        if region.body:
            said.append(f"The loop of {region.id} is a loop of Python, each step of which launches the kernels of its body.")
    if bound.laid_out.returned != graph.returned:
        said.append("Results may lie with their channels last: same shapes and values as the reference's, other strides.")
    if schedule.reduction_pushdown:
        said.append("A sum is taken before its product: equal for finite values whose partial results stay in range.")
    if schedule.folded_batch_norms:
        said.append("Batch norm is folded into weights: equal for finite values whose partial results stay in range.")
    if packed := bound.laid_out.prepacked:
        said.append(f"Made of parameters once for all calls, in `pack_weights`: {', '.join(node.name for node in packed)}.")
    if graph.traces == 1:
        said.append("The problem has no sizes that can be varied: constants of its shapes are literals.")
    return tuple(said)
