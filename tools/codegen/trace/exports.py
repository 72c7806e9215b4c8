"""What torch.export makes of a reference, each of its variants exported once, however often it is read with other operators written out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tools.codegen.ir.sizes import Number
from tools.codegen.trace.assigned import plain_tensors
from tools.codegen.trace.export import Reading, export_module
from tools.codegen.trace.exported_graph import ExportedGraph
from tools.codegen.trace.python_state import keeps_state
from tools.codegen.trace.written_out import WHOLE, WrittenOut
from tools.errors import UserError
from tools.native import fake_tensors
from tools.records import Problem, ProblemForm, TensorSpec

if TYPE_CHECKING:
    from torch import nn
    from torch._subclasses.fake_tensor import FakeTensorMode


class Exports:
    """The exports of one reference's variants, kept for as long as it is traced: to export takes ten times as long as to read."""

    def __init__(self, problem: Problem, variants: tuple[Problem, ...] | None = None) -> None:
        """Begin with none; where no `variants` are given, they are sought."""
        from tools.problems import small_variants
        from tools.problems.mixed_sizes import mixed_variants

        self.variants = small_variants(problem) if variants is None else variants
        self.mixed = mixed_variants(problem) if variants is None else ()
        """Further ones, that are no more than witnesses."""
        self._made: dict[str, Reading] = {}

    def read(self, problem: Problem, written_out: WrittenOut = WHOLE) -> ExportedGraph:
        """Read a variant, some operators as what they are made of; it is exported where it was not."""
        if problem.form is ProblemForm.EXPORTED:
            # it has its weights' contents, which would be kept once for each variant
            return _export(problem)(written_out)
        key = problem.model_dump_json()
        if key not in self._made:
            self._made[key] = _export(problem)
        return self._made[key](written_out)


def export_problem(problem: Problem) -> ExportedGraph:
    """Export one variant of a problem under fake tensors, every operator as it is: shapes and dtypes only."""
    return _export(problem)(WHOLE)


def _export(problem: Problem) -> Reading:
    mode = fake_tensors()
    module = make_module(problem, mode)
    with mode:
        read = export_module(module, fake_arguments(problem), problem)
    attributes, plain = _attributes(module, problem), frozenset(path for path, *_ in plain_tensors(module))

    def reading(written_out: WrittenOut) -> ExportedGraph:
        with mode:
            return replace(read(written_out), attributes=attributes, plain=plain)

    return reading


def _attributes(module: nn.Module, problem: Problem) -> dict[str, Number]:
    """List the numbers that a module's constructor left in it, where the emitted module has that constructor, by their path."""
    if problem.form is not ProblemForm.KERNELBENCH or keeps_state(problem):
        return {}
    paths = ((f"{path}.{name}" if path else name, value) for path, each in module.named_modules() for name, value in vars(each).items())
    return {path: value for path, value in paths if type(value) in (int, float)}


def make_module(problem: Problem, mode: FakeTensorMode) -> nn.Module:
    """Make the reference without its weights' contents, unless it is an archive, which brings them, or its constructor reads contents."""
    from tools.problems import open_problem
    from tools.problems.analysis import needs_contents

    if problem.form is not ProblemForm.EXPORTED:
        try:
            with mode:
                return open_problem(problem).module
        except UserError as error:
            if not needs_contents(error.__cause__):
                raise
    return open_problem(problem).module


def fake_arguments(problem: Problem) -> tuple[Any, ...]:
    """Make the forward call's arguments from the ABI; under a fake tensor mode they take no memory."""
    import torch

    return tuple(
        torch.empty(spec.shape, dtype=getattr(torch, spec.dtype)) if isinstance(spec, TensorSpec) else spec.value
        for spec in problem.abi.arguments
    )
