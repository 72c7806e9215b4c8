"""Which writes to a module's buffers can wait until forward ends, where those of one kind are made in one call."""

from __future__ import annotations

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.views import is_view


def deferrable(graph: OperatorGraph) -> frozenset[str]:
    """Name the writes to buffers that can wait until forward ends: whole buffers, each written once and not read after it."""
    found = (graph.by_name[name] for name in graph.effects if name in graph.by_name)
    return frozenset(node.name for node in found if can_wait(graph, node))


def can_wait(graph: OperatorGraph, node: Node) -> bool:
    """Whether a node is such a write."""
    if node.name not in graph.effects or node.op not in ("copy_", "add_"):
        return False
    if len(node.args) != 2 or node.kwargs or not isinstance(node.args[0], Ref):
        return False
    buffer, value = node.args
    if buffer.name not in graph.inputs or graph.users.get(node.name) or {buffer.name, node.name} & {r.name for r in graph.returned}:
        return False
    readers = [user for user in graph.users[buffer.name] if user is not node]
    # whoever reads the buffer before it is written here takes what was there before, later as well
    if any(is_view(user) or user.name in graph.effects or graph.order[user.name] > graph.order[node.name] for user in readers):
        return False
    if node.op == "add_":
        return isinstance(value, int) and not isinstance(value, bool)
    return _is_made(graph, value) and graph.meta(value).shape == graph.meta(buffer).shape


def _is_made(graph: OperatorGraph, value: object) -> bool:
    """Whether a value has memory of its own, which no later write changes."""
    node = graph.by_name.get(value.name) if isinstance(value, Ref) else None
    return node is not None and not is_view(node) and node.name not in graph.effects
