"""All loops over experts of an exported program, and which of its nodes they take the place of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tools.codegen.trace.dispatch.body import BodyBuilder, Recognised
from tools.codegen.trace.dispatch.loops import NoDispatchError, loops_over_experts
from tools.codegen.trace.dispatch.masks import op_of
from tools.codegen.trace.dispatch.row_subsets import OPERATOR

if TYPE_CHECKING:
    from torch import fx
    from torch.export import ExportedProgram

KEPT_ALIVE = ("detach_",)
"""Operators that write in place by their names alone."""


@dataclass(frozen=True)
class Dispatches:
    """What was found."""

    results: Mapping[fx.Node, Recognised] = field(default_factory=dict)
    """By the node that holds a loop's result."""
    left_out: frozenset[fx.Node] = frozenset()
    """Nodes that are the loops', or are there for them alone."""
    blocked: tuple[str, ...] = ()
    """Why rows that are picked are none of experts."""


def dispatches_of(program: ExportedProgram) -> Dispatches:
    """Find the loops over experts of a program."""
    if not any(str(node.target) == OPERATOR for node in program.graph.nodes):
        return Dispatches()
    specs = program.graph_signature.input_specs
    constants = {spec.arg.name: program.constants[spec.target] for spec in specs if spec.target in program.constants}
    try:
        loops = loops_over_experts(program.graph, constants)
        found = {loop.last: BodyBuilder(loop).build() for loop in loops}
    except NoDispatchError as error:
        return Dispatches(blocked=(str(error),))
    members = frozenset(node for loop in loops for node in loop.members)
    return Dispatches(found, _left_out(program.graph, members, found))


def _left_out(graph: fx.Graph, members: frozenset[fx.Node], found: Mapping[fx.Node, Recognised]) -> frozenset[fx.Node]:
    """Add what only the loops read, and they do no longer."""
    needed = {arg for one in found.values() for arg in one.args}
    gone = set(members)
    for node in reversed(list(graph.nodes)):
        writes = op_of(node).endswith("_") and op_of(node) not in KEPT_ALIVE
        if node.op == "call_function" and node not in needed and not writes and all(user in gone for user in node.users):
            gone.add(node)
    return frozenset(gone - found.keys())
