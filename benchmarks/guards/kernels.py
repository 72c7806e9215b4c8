"""Kernels to be guarded: schedules with every region generated, and the import of an emitted file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from tools.codegen import LoweringError, OperatorGraph, Schedule, emit, initial_schedule, trace
from tools.codegen.schedule.plan import plan_region
from tools.records import Problem


def emitted(problem: Problem, *, captured: bool = False) -> str:
    """Emit a problem's kernels, with every region generated that can be."""
    graph = trace(problem)
    return emit(problem, graph, all_generated(graph).model_copy(update={"captured": captured})).source


def all_generated(graph: OperatorGraph) -> Schedule:
    """Generate every region that can be, with first parameters."""
    regions = []
    for region in initial_schedule(graph).regions:
        try:
            planned = plan_region(graph, region.nodes, region.template)
        except LoweringError:
            regions.append(region)
        else:
            regions.append(region.model_copy(update={"template": planned.template.name, "parameters": dict(planned.defaults(132))}))
    return Schedule(regions=tuple(regions))


def load(source: str, folder: Path) -> Any:
    """Import a file's ModelNew."""
    path = folder / "kernel.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    spec.loader.exec_module(module)
    return module.ModelNew
