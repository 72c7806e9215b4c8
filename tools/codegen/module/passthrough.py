"""A reference that cannot be traced, as a `ModelNew` with the reference's own forward: nothing generated, nothing guessed."""

from __future__ import annotations

import re

from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Schedule
from tools.codegen.module.cuda_graph import captured
from tools.codegen.module.forward import class_text
from tools.codegen.module.link import Emission
from tools.codegen.templates.shared.prepack import Packing
from tools.errors import UserError
from tools.records import Problem, ProblemForm


def pass_through(problem: Problem, graph: OperatorGraph, schedule: Schedule) -> Emission:
    """Write a reference of which nothing can be generated, and say why."""
    source = _verbatim(problem, graph)
    notes = tuple(f"Left to the reference: {reason}." for reason in graph.blocked)
    return Emission(source=captured(source) if schedule.captured else source, notes=notes)


def _verbatim(problem: Problem, graph: OperatorGraph) -> str:
    """Rename the reference's class, or wrap its function."""
    if problem.form is ProblemForm.KERNELBENCH:
        return re.sub(rf"\b{re.escape(problem.entry)}\b", "ModelNew", problem.source)
    if problem.form is ProblemForm.FUNCTION:
        arguments = ", ".join(graph.arguments or tuple(spec.name for spec in problem.abi.arguments))
        model = class_text(problem, graph, None, [f"return {problem.entry}({arguments})"], Packing())
        return f"{problem.source.rstrip()}\n\n\nfrom torch import nn  # noqa: E402\n\n\n{model}\n"
    raise UserError("This exported module cannot be traced again.", "Give it as a KernelBench file instead.")
