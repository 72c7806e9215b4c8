"""Batch norm by the batch's statistics as two steps: the statistics of each channel, and pointwise operators that normalise by them.

The first reads the input and writes a few numbers. The second joins whatever comes after it, a pooling, an addition or another norm's
normalising, in a kernel that is walked as its own results lie.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tools.codegen.ir.graph import Node, Normalised, OperatorGraph, Ref, Statistics, map_refs
from tools.codegen.ir.graph_builder import GraphBuilder
from tools.codegen.rewrite.images.shared_statistics import PieceStatistics, flattened, shared_pieces

TRAINING = 5
"""Where ATen's batch norm says whether it takes the batch's statistics."""
MEAN, INVERSE_STD = 1, 2
"""Results that the normalising reads."""
STEM = "statistics"
"""What the name of the first step ends with; the last pointwise operator has the norm's own."""


def separable_statistics(graph: OperatorGraph) -> tuple[str, ...]:
    """Name the norms that can be written so."""
    return tuple(node.name for node in graph.nodes if _is_separable(graph, node))


def with_separate_statistics(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Write the named norms in two steps, where that has not been done yet."""
    wanted = frozenset(names)
    norms = [node for node in graph.nodes if node.name in wanted and _is_separable(graph, node)]
    shared, pieces = shared_pieces(graph, norms), PieceStatistics(graph)
    found = {node.name for node in norms}
    renamed: dict[Ref, Ref] = {}
    nodes: list[Node] = []

    def moved(ref: Ref) -> Ref:
        return renamed.get(ref, ref)

    for node in graph.nodes:
        read = replace(node, args=map_refs(node.args, moved), kwargs=map_refs(node.kwargs, moved))
        if node.name not in found:
            nodes.append(flattened(graph, read, shared))
            continue
        first, values = pieces.of(read, shared[node.name]) if node.name in shared else _statistics(graph, read)
        renamed |= {Ref(node.name, place): value for place, value in values.items()}
        nodes += [*first, *_normalising(graph, read, first, values)]
    return replace(graph, nodes=tuple(nodes), outputs=map_refs(graph.outputs, moved)) if renamed else graph


def biases_again(graph: OperatorGraph, biases: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """List copies of biases that were taken out before such a norm, for what normalises: else their sums would be written and read.

    As `Schedule.recomputed` has them: node, name of its copy, the copy's readers.
    """
    found: list[tuple[str, ...]] = []
    for node in graph.nodes:
        source = node.args[0].name if isinstance(node, Statistics) else ""
        readers = [user for user in graph.users.get(source, ()) if user is not node] if source in biases else []
        if readers and Ref(source) not in graph.returned and all(user.op == "sub" for user in readers):
            found.append((source, f"{source}_in_{node.name}", *(user.name for user in readers)))
    return tuple(found)


def _is_separable(graph: OperatorGraph, node: Node) -> bool:
    if node.op != "_native_batch_norm_legit_functional" or isinstance(node, Statistics) or not node.args[TRAINING]:
        return False
    read = {ref.index for user in graph.users.get(node.name, ()) for ref in user.refs if ref.name == node.name}
    return 0 in read and node.outputs[0].dtype == "float32" and len(node.outputs[0].shape) > 2


def _statistics(graph: OperatorGraph, node: Node) -> tuple[list[Node], dict[int, Ref]]:
    """Write a norm's statistics as one step, and name its results but the first."""
    name = f"{node.name}_{STEM}"
    while name in graph.inputs or name in graph.by_name:
        name += "_"
    values = {place: Ref(name, place) for place in range(1, len(node.outputs))}
    return [Statistics(name, node.target, node.args, node.kwargs, node.outputs)], values


def _normalising(graph: OperatorGraph, node: Node, before: list[Node], values: dict[int, Ref]) -> list[Node]:
    """Write what a norm does by its statistics, whose nodes come `before`."""
    builder = GraphBuilder(graph, node.name)
    builder.taken |= {each.name for each in before}
    source, weight, bias = node.args[:3]

    def channels(ref: Ref) -> Ref:
        for _ in node.outputs[0].shape[2:]:
            ref = builder.call("unsqueeze.default", ref, -1)
        return ref

    def statistic(index: int) -> Ref:
        builder.results[values[index]] = node.outputs[index]
        return channels(values[index])

    value = builder.call("sub.Tensor", source, statistic(MEAN))
    value = builder.call("mul.Tensor", value, statistic(INVERSE_STD))
    for target, parameter in (("mul.Tensor", weight), ("add.Tensor", bias)):
        value = builder.call(target, value, channels(parameter)) if parameter is not None else value
    last = builder.nodes.pop()
    return [*builder.nodes, Normalised(node.name, last.target, last.args, last.kwargs, node.outputs[:1], (weight, bias))]
