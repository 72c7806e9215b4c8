"""Batch norm by the batch's statistics as two steps: the statistics of each channel, and pointwise operators that normalise by them.

The first reads the input and writes a few numbers. The second joins whatever comes after it, a pooling, an addition or another norm's
normalising, in a kernel that is walked as its own results lie.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, Statistics, map_refs
from tools.codegen.ir.graph_builder import GraphBuilder

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
    renamed: dict[str, str] = {}
    nodes: list[Node] = []

    def moved(ref: Ref) -> Ref:
        return Ref(renamed[ref.name], ref.index) if ref.index and ref.name in renamed else ref

    for node in graph.nodes:
        read = replace(node, args=map_refs(node.args, moved), kwargs=map_refs(node.kwargs, moved))
        if node.name not in wanted or not _is_separable(graph, node):
            nodes.append(read)
            continue
        statistics, *rest = _separated(graph, read)
        renamed[node.name] = statistics.name
        nodes += [statistics, *rest]
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


def _separated(graph: OperatorGraph, node: Node) -> list[Node]:
    builder = GraphBuilder(graph, node.name)
    name = f"{node.name}_{STEM}"
    while name in builder.taken:
        name += "_"
    builder.taken.add(name)
    source, weight, bias = node.args[:3]
    metas = {MEAN: node.outputs[MEAN], INVERSE_STD: node.outputs[INVERSE_STD]}

    def channels(ref: Ref) -> Ref:
        for _ in node.outputs[0].shape[2:]:
            ref = builder.call("unsqueeze.default", ref, -1)
        return ref

    def statistic(index: int) -> Ref:
        ref = Ref(name, index)
        builder.results[ref] = metas[index]
        return channels(ref)

    value = builder.call("sub.Tensor", source, statistic(MEAN))
    value = builder.call("mul.Tensor", value, statistic(INVERSE_STD))
    for target, parameter in (("mul.Tensor", weight), ("add.Tensor", bias)):
        value = builder.call(target, value, channels(parameter)) if parameter is not None else value
    last = replace(builder.nodes.pop(), name=node.name, outputs=node.outputs[:1])
    return [Statistics(name, node.target, node.args, node.kwargs, node.outputs), *builder.nodes, last]
