"""Emit each region of a schedule: its kernels, and the host function that launches them, under names of the file's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tools.codegen.module.dedup import Functions
from tools.codegen.module.function_names import function_name
from tools.codegen.module.in_place import written_in_place
from tools.codegen.module.reference_text import KeptText, keep
from tools.codegen.module.together import is_one_grid, one_of
from tools.codegen.rewrite.bind import BoundGraph
from tools.codegen.schedule.plan import PlannedRegion
from tools.codegen.schedule.together import together
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.naming import Names
from tools.records import Problem, ProblemForm


@dataclass(frozen=True)
class EmittedRegions:
    """The text of a schedule's generated regions, and what the rest of the file has to keep clear of."""

    texts: dict[str, RegionText]
    """By region; of regions that share their launches by the first."""
    kept: KeptText | None
    """What of a class-form reference goes into the file."""
    taken: frozenset[str]
    """Names of the file's functions, and of what is kept."""
    functions: Functions
    """Which functions serve several regions."""


def emit_regions(problem: Problem, bound: BoundGraph, planned: Sequence[PlannedRegion]) -> EmittedRegions:
    """Write every region by its template; raises LoweringError where a size it needs cannot be told at run time."""
    kept = keep(problem) if problem.form is ProblemForm.KERNELBENCH else None
    graph = bound.laid_out
    names = Names({*(kept.names if kept else ()), *graph.arguments, "ModelNew", "F", "torch", "nn"})
    functions = Functions()
    groups = together(graph, bound.schedule) if bound.schedule.together else ()
    texts: dict[str, RegionText] = {}
    for group in _grouped(planned, groups):
        before = set(names.taken)
        written = [_region(each, names) for each in group]
        several = len(group) > 1 and all(map(is_one_grid, written))
        found = {group[0].region.id: one_of(written, names.fresh(f"{written[0].function}_and_others"))} if several else {}
        found = found or {each.region.id: text for each, text in zip(group, written, strict=True)}
        shared = {name: functions.shared(text) for name, text in found.items()}
        if not any(text.source for text in shared.values()):
            # written before: its names are free again
            names.taken = before
        texts |= shared
    return EmittedRegions(texts, kept, frozenset(names.taken), functions)


def _grouped(planned: Sequence[PlannedRegion], groups: Sequence[Sequence[str]]) -> Iterator[list[PlannedRegion]]:
    """Yield regions that share their launches together, the others by themselves."""
    first = {name: group[0] for group in groups for name in group}
    for _, found in groupby(planned, key=lambda each: first.get(each.region.id, each.region.id)):
        yield list(found)


def _region(placed: PlannedRegion, names: Names) -> RegionText:
    region, template, kernel = placed.region, placed.planned.template, placed.planned.kernel
    nodes = [placed.graph.by_name[node] for node in region.nodes]
    while True:
        name = names.fresh(template.function) if template.function else function_name(nodes, names)
        names.fresh(f"{name}_kernel")
        text = template.emit(kernel, name, region.parameters)
        # a tensor with the name of a function would hide it from the host function
        if placed.graph.inputs.keys().isdisjoint(re.findall(r"^def (\w+)", text.source, re.MULTILINE)):
            return written_in_place(placed, text)
