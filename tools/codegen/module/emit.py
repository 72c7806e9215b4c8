"""Emit each region of a schedule: its kernels, and the host function that launches them, under names of the file's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.module.dedup import Functions
from tools.codegen.module.function_names import function_name
from tools.codegen.module.reference_text import KeptText, keep
from tools.codegen.rewrite.bind import BoundGraph
from tools.codegen.schedule.plan import PlannedRegion
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.naming import Names
from tools.records import Problem, ProblemForm


@dataclass(frozen=True)
class EmittedRegions:
    """The text of a schedule's generated regions, and what the rest of the file has to keep clear of."""

    texts: dict[str, RegionText]
    """By region."""
    kept: KeptText | None
    """What of a class-form reference goes into the file."""
    taken: frozenset[str]
    """Names of the file's functions, and of what is kept."""
    functions: Functions
    """Which functions serve several regions."""


def emit_regions(problem: Problem, bound: BoundGraph, planned: Sequence[PlannedRegion]) -> EmittedRegions:
    """Write every region by its template; raises LoweringError where a size it needs cannot be told at run time."""
    kept = keep(problem) if problem.form is ProblemForm.KERNELBENCH else None
    names = Names({*(kept.names if kept else ()), "ModelNew", "F", "torch", "nn"})
    functions = Functions()
    texts = {each.region.id: _region(bound.laid_out, each, names, functions) for each in planned}
    return EmittedRegions(texts, kept, frozenset(names.taken), functions)


def _region(graph: OperatorGraph, placed: PlannedRegion, names: Names, functions: Functions) -> RegionText:
    region, template, kernel = placed.region, placed.planned.template, placed.planned.kernel
    nodes = [graph.by_name[node] for node in region.nodes]
    before = set(names.taken)
    name = names.fresh(template.function) if template.function else function_name(nodes, names)
    names.fresh(f"{name}_kernel")
    text = functions.shared(template.emit(kernel, name, region.parameters))
    if not text.source:
        # written before: its names are free again
        names.taken = before
    return text
