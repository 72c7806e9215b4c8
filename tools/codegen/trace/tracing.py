"""Trace a reference into an operator graph, at its sizes as written and at its small variants, without allocating its tensors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tools.codegen.ir.constant_tensors import CONSTANT, MAKES_NUMBERS, Tables
from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import DataSized, Node, OperatorGraph, TensorMeta
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.operators.families import RECURRENT, RECURRENT_LAUNCHES, WAITING
from tools.codegen.ir.sizes import Attribute, Number, Varying
from tools.codegen.trace.align_traces import agreed
from tools.codegen.trace.exported_graph import ExportedGraph
from tools.codegen.trace.exports import Exports, make_module
from tools.codegen.trace.fold_loops import alike_with_loops, unevenness
from tools.codegen.trace.hidden_constants import hidden_constants
from tools.codegen.trace.lengthen import OtherGrowthError, lengthened
from tools.codegen.trace.python_state import keeps_state
from tools.codegen.trace.short_lengths import Shortened, shortened
from tools.codegen.trace.written_out import WHOLE, WrittenOut
from tools.native import fake_tensors
from tools.records import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


MOST = 6000
"""Operators of all traces together that are traced one by one: an operator takes about 5 ms."""
MOST_OF_EXPERTS = 24000
"""The same where rows are written by index, as each expert's are: what a trace works out for one expert it knows of the others."""
WRITES_ROWS = ("aten.index_add_.", "aten.index_put_.", "aten.index_add.", "aten.index_put.")


def trace_reference(
    problem: Problem, *, loops: bool = True, written_out: WrittenOut = WHOLE, exports: Exports | None = None
) -> OperatorGraph:
    """Trace `problem`; where its sizes can be varied, tell by the variants which numbers come from sizes.

    With `exports`, what was exported before in another tracing of it is only read.
    """
    made = exports or Exports(problem)
    variants, shapes = made.variants, [problem.at(shape) for shape in problem.shapes]
    short = shortened(problem, variants) if loops and not shapes else None
    folded = _at_full_length(problem, short, partial(made.read, written_out=written_out)) if short is not None else None
    if folded is not None and not folded.blocked:
        return folded
    most = MOST_OF_EXPERTS if any(name.startswith(WRITES_ROWS) for name in problem.work.operators) else MOST
    operators = sum(len(each.work.operators) for each in (problem, *shapes, *variants))
    # recurrent layers are run as operators for each of their steps, and traced as one
    if operators > most and not _has_recurrent_layers(problem):
        reason = f"the reference runs {operators} operators at the sizes of its traces, more than {most}, and no constant shortens them"
        return folded or _blocked(problem, None, (reason,), replayable=False)
    every = (problem, *shapes, *variants)
    mixed = made.mixed if operators + sum(len(each.work.operators) for each in made.mixed) <= most else ()
    graph = _laid_over(problem, (*every, *mixed), partial(made.read, written_out=written_out), loops=loops)
    if graph.blocked and mixed:
        graph = _laid_over(problem, every, partial(made.read, written_out=written_out), loops=loops)
    # where neither will do, what is wrong with its loop says more
    return folded if folded is not None and graph.blocked else graph


def _at_full_length(problem: Problem, short: Shortened, read: Callable[[Problem], ExportedGraph]) -> OperatorGraph:
    """Trace a reference at few steps of its loops, and carry on what grows with their length."""
    exports = alike_with_loops([read(each) for each in short.problems])
    replayable = all(export.replayable for export in exports)
    if not any(isinstance(node, Loop) for node in exports[0].nodes):
        return _blocked(problem, None, exports[0].blocked or (_uneven(exports[0], short),), replayable=replayable)
    graph = _knowing(problem, short.problems, merge(problem, exports, short.problems), short.own)
    if graph.blocked:
        return _blocked(problem, None, graph.blocked, replayable=replayable)
    whole = set(short.lengths.values())
    try:
        if len(whole) > 1:
            raise OtherGrowthError("its loops differ in length")
        return lengthened(graph, short.at, whole.pop())
    except OtherGrowthError as error:
        return _blocked(problem, None, (str(error),), replayable=replayable)


def _uneven(export: ExportedGraph, short: Shortened) -> str:
    """Say which loop's steps are not alike, and what of them."""
    said = f"the steps of its loop, {' and '.join(short.lengths)} of them, are not alike"
    return f"{said}: {why}" if (why := unevenness(export)) else said


def _laid_over(problem: Problem, every: Sequence[Problem], read: Callable[[Problem], ExportedGraph], *, loops: bool) -> OperatorGraph:
    """Trace a reference as written and at other sizes, and lay the traces over each other."""
    exports = [read(each) for each in every]
    return _knowing(problem, every, merge(problem, alike_with_loops(exports) if loops else exports, every))


def _knowing(
    problem: Problem, traced: Sequence[Problem], graph: OperatorGraph, own: Mapping[str, tuple[int | None, ...]] = MappingProxyType({})
) -> OperatorGraph:
    """Add the constants of the file that no shape tells."""
    return graph if graph.blocked else replace(graph, constants=hidden_constants(problem, traced, graph.inputs, own))


def _merge_attributes(kept: Sequence[Mapping[str, Number]]) -> tuple[Attribute, ...]:
    """Lay the numbers of all traces over each other, as far as they differ."""
    every = [path for path in kept[0] if all(path in each for each in kept)]
    found = (Attribute(path, tuple(each[path] for each in kept)) for path in every)
    return tuple(each for each in found if len(set(map(repr, each.values))) > 1)


def _has_recurrent_layers(problem: Problem) -> bool:
    """Whether the reference has an LSTM, a GRU or an RNN of PyTorch's own."""
    from torch import nn

    return any(isinstance(module, nn.RNNBase) for module in make_module(problem, fake_tensors()).modules())


def merge(problem: Problem, exports: Sequence[ExportedGraph], traced: Sequence[Problem] = ()) -> OperatorGraph:
    """Lay the traces over each other, those of `traced`: constants that differ become `Varying`, shapes hold one size a trace."""
    from tools.problems.variants import describe_sizes

    exports = agreed(exports)
    first = exports[0]
    blocked = tuple(dict.fromkeys(reason for export in exports for reason in export.blocked))
    if others := [place for place, export in enumerate(exports) if export.signature != first.signature]:
        where = f": at {describe_sizes(traced[others[0]])}" if traced else ""
        blocked = (*blocked, f"the reference runs other operators at other sizes{where}")
    if blocked:
        return _blocked(problem, first, blocked, replayable=all(export.replayable for export in exports))
    inputs = {name: _merge_meta([export.inputs[name] for export in exports]) for name in first.inputs}
    changing = {spec.name for spec in problem.abi.parameters if spec.dynamic} | first.plain
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
        replayable=not problem.abi.written,
        effects=first.effects,
        buffers=first.buffers,
        plain=frozenset(name for name, key in first.parameters.items() if key in first.plain),
        attributes=_merge_attributes([export.attributes for export in exports]),
        fixed=frozenset(name for name, key in first.parameters.items() if key not in changing),
    )


def _blocked(problem: Problem, export: ExportedGraph | None, reasons: tuple[str, ...], *, replayable: bool) -> OperatorGraph:
    calls = sum(RECURRENT_LAUNCHES if node.op in RECURRENT else 1 for node in export.nodes) if export else len(problem.work.operators)
    return OperatorGraph(
        arguments=export.arguments if export else tuple(spec.name for spec in problem.abi.arguments),
        parameters=export.parameters if export else {},
        inputs=export.inputs if export else {},
        nodes=(),
        outputs=(),
        traces=1,
        training=problem.abi.training,
        calls=calls,
        keeps_state=keeps_state(problem),
        blocked=reasons,
        replayable=replayable and WAITING.isdisjoint(part for name in problem.work.operators for part in name.split(".")[1:2]),
    )


def _merge_meta(metas: Sequence[TensorMeta]) -> TensorMeta:
    shapes = zip(*(meta.shape for meta in metas), strict=True)
    return TensorMeta(
        shape=tuple(tuple(size for sizes in dims for size in sizes) for dims in shapes),
        dtype=metas[0].dtype,
        contiguous=all(meta.contiguous for meta in metas),
        unit_last=all(meta.unit_last for meta in metas),
        seen=metas[0].seen,
    )


def _merge_node(nodes: Sequence[Node]) -> Node:
    first = nodes[0]
    if isinstance(first, Loop):
        loops = [node for node in nodes if isinstance(node, Loop)]
        steps = tuple(step for loop in loops for step in loop.steps)
        nodes = [replace(first, body=_merge_body([loop.body for loop in loops]), steps=steps), *nodes[1:]]
    elif isinstance(first, Dispatch):
        nodes = [replace(first, body=_merge_body([node.body for node in nodes if isinstance(node, Dispatch)])), *nodes[1:]]
    elif isinstance(first, DataSized):
        bodies = zip(*(node.body for node in nodes if isinstance(node, DataSized)), strict=True)
        nodes = [replace(first, body=tuple(map(_merge_node, bodies))), *nodes[1:]]
    outputs = tuple(_merge_meta(metas) for metas in zip(*(node.outputs for node in nodes), strict=True))
    if first.target.startswith(MAKES_NUMBERS) and any(len(set(sizes)) > 1 for sizes in outputs[0].shape):
        return replace(first, target=CONSTANT, args=(Tables(tuple(node.args[0] for node in nodes)),), outputs=outputs)
    args = _merge_tree([node.args for node in nodes])
    kwargs = {key: _merge_tree([node.kwargs[key] for node in nodes]) for key in nodes[0].kwargs}
    return replace(nodes[0], args=args, kwargs=kwargs, outputs=outputs)


def _merge_body(bodies: Sequence[OperatorGraph]) -> OperatorGraph:
    first = bodies[0]
    inputs = {name: _merge_meta([body.inputs[name] for body in bodies]) for name in first.inputs}
    nodes = tuple(_merge_node(group) for group in zip(*(body.nodes for body in bodies), strict=True))
    return replace(first, inputs=inputs, nodes=nodes, traces=len(bodies))


def _merge_tree(trees: Sequence[Any]) -> Any:
    first = trees[0]
    if isinstance(first, tuple | list):
        return type(first)(_merge_tree(items) for items in zip(*trees, strict=True))
    # by repr: no NaN equals another, but each is the same literal
    if isinstance(first, int | float) and not isinstance(first, bool) and len({repr(tree) for tree in trees}) > 1:
        return Varying(tuple(trees))
    return first
