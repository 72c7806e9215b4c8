"""Trace a reference into an operator graph, at its sizes as written and at its small variants, without allocating its tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tools.codegen.ir.graph import Node, OperatorGraph, TensorMeta
from tools.codegen.ir.operators import RECURRENT, RECURRENT_LAUNCHES
from tools.codegen.ir.sizes import Varying
from tools.codegen.trace.align_traces import agreed
from tools.codegen.trace.export import ExportedGraph, export_module
from tools.codegen.trace.python_state import keeps_state
from tools.errors import UserError
from tools.native import fake_tensors
from tools.records import Problem, ProblemForm, TensorSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn
    from torch._subclasses.fake_tensor import FakeTensorMode


def trace_reference(problem: Problem) -> OperatorGraph:
    """Trace `problem`; where its sizes can be varied, tell by the variants which numbers come from sizes."""
    from tools.problems import small_variants

    shapes = [problem.at(shape) for shape in problem.shapes]
    return merge(problem, [export_problem(each) for each in (problem, *shapes, *small_variants(problem))])


def export_problem(problem: Problem) -> ExportedGraph:
    """Export one variant of a problem under fake tensors: shapes and dtypes only."""
    mode = fake_tensors()
    module = _module(problem, mode)
    with mode:
        return export_module(module, fake_arguments(problem), problem)


def _module(problem: Problem, mode: FakeTensorMode) -> nn.Module:
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


def merge(problem: Problem, exports: Sequence[ExportedGraph]) -> OperatorGraph:
    """Lay the traces over each other: constants that differ become `Varying`, shapes hold one size a trace."""
    exports = agreed(exports)
    first = exports[0]
    blocked = tuple(dict.fromkeys(reason for export in exports for reason in export.blocked))
    if any(export.signature != first.signature for export in exports):
        blocked = (*blocked, "the reference runs other operators at other sizes")
    if blocked:
        return _blocked(problem, first, blocked, replayable=all(export.replayable for export in exports))
    inputs = {name: _merge_meta([export.inputs[name] for export in exports]) for name in first.inputs}
    changing = {spec.name for spec in problem.abi.parameters if spec.dynamic}
    nodes = tuple(_merge_node(group) for group in zip(*(export.nodes for export in exports), strict=True))
    return OperatorGraph(
        arguments=first.arguments,
        parameters=first.parameters,
        inputs=inputs,
        nodes=nodes,
        outputs=first.outputs,
        traces=len(exports),
        training=problem.abi.training,
        keeps_state=keeps_state(problem),
        effects=first.effects,
        buffers=first.buffers,
        fixed=frozenset(name for name, key in first.parameters.items() if key not in changing),
    )


def _blocked(problem: Problem, export: ExportedGraph, reasons: tuple[str, ...], *, replayable: bool) -> OperatorGraph:
    return OperatorGraph(
        arguments=export.arguments,
        parameters=export.parameters,
        inputs=export.inputs,
        nodes=(),
        outputs=(),
        traces=1,
        training=problem.abi.training,
        calls=sum(RECURRENT_LAUNCHES if node.op in RECURRENT else 1 for node in export.nodes),
        keeps_state=keeps_state(problem),
        blocked=reasons,
        replayable=replayable,
    )


def _merge_meta(metas: Sequence[TensorMeta]) -> TensorMeta:
    shapes = zip(*(meta.shape for meta in metas), strict=True)
    return TensorMeta(
        shape=tuple(tuple(size for sizes in dims for size in sizes) for dims in shapes),
        dtype=metas[0].dtype,
        contiguous=all(meta.contiguous for meta in metas),
        unit_last=all(meta.unit_last for meta in metas),
    )


def _merge_node(nodes: Sequence[Node]) -> Node:
    outputs = tuple(_merge_meta(metas) for metas in zip(*(node.outputs for node in nodes), strict=True))
    args = _merge_tree([node.args for node in nodes])
    kwargs = {key: _merge_tree([node.kwargs[key] for node in nodes]) for key in nodes[0].kwargs}
    return replace(nodes[0], args=args, kwargs=kwargs, outputs=outputs)


def _merge_tree(trees: Sequence[Any]) -> Any:
    first = trees[0]
    if isinstance(first, tuple | list):
        return type(first)(_merge_tree(items) for items in zip(*trees, strict=True))
    # by repr: no NaN equals another, but each is the same literal
    if isinstance(first, int | float) and not isinstance(first, bool) and len({repr(tree) for tree in trees}) > 1:
        return Varying(tuple(trees))
    return first
