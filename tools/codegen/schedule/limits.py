"""What the built-in coder cannot generate in a graph, and why: said, and left to the reference's own operators."""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region
from tools.records import Record
from tools.records.problem import is_statistic


class Limit(Record):
    """One operator that is left to the library."""

    node: str
    """Name in the graph; empty where the whole reference is meant."""
    operator: str
    """E.g. `aten.conv2d.default`."""
    reason: str


def limits(graph: OperatorGraph) -> tuple[Limit, ...]:
    """List every operator that no template can generate by itself."""
    found = [Limit(node="", operator="the whole reference", reason=reason) for reason in graph.blocked]
    for node in graph.nodes:
        if is_view(node) or _stores(graph, node):
            continue
        try:
            plan_region(graph, (node.name,))
        except LoweringError as error:
            found.append(Limit(node=node.name, operator=node.target, reason=str(error)))
    return tuple(found)


def _stores(graph: OperatorGraph, node: Node) -> bool:
    """Whether a node only copies a value to an argument or a buffer: a kernel may write it there, and is not kept from anything."""
    target = node.args[0] if node.name in graph.effects and node.op == "copy_" else None
    return isinstance(target, Ref) and target.name in graph.inputs and not is_statistic(graph.parameters.get(target.name, ""))
